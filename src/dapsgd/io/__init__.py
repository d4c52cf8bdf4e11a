r"""Data from files: CSV, svmlight, NPY, NPZ, Parquet and Arrow, read or converted once into a folder that is memory-mapped.

Every kind of file has a reader of its own, which gives blocks of rows; what is done with the blocks is the same for all. No
pickle is ever read, and what a header claims is compared with the size of the file before memory is asked for.

>>> import tempfile
>>> from pathlib import Path
>>> import dapsgd.io
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "small.csv"
...     _ = path.write_text("height,width,price\n1,2,10\n3,4,20\n")
...     data = dapsgd.io.read(path, target="price")
>>> data.X
array([[1., 2.],
       [3., 4.]])
>>> data.y, data.feature_names
(array([10., 20.]), ('height', 'width'))
"""

from ._dataset import Dataset
from ._folder import convert, default_folder, open_folder
from ._formats import ENDINGS, column_names
from ._read import read, read_blocks

__all__ = ["ENDINGS", "Dataset", "column_names", "convert", "default_folder", "open_folder", "read", "read_blocks"]
