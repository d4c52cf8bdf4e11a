"""Runs in threads of another package end with the call that they are part of."""

import pickle
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

import dapsgd as ds
from dapsgd._halt import Halt, end_if_asked
from dapsgd.estimators._search import CrossValidated


class Tasks:
    """Tasks that go on until they are asked to end."""

    def __init__(self):
        self.begun, self.ended = threading.Semaphore(0), 0

    def __call__(self, *_):
        self.begun.release()
        try:
            while True:
                end_if_asked()
                time.sleep(0.001)
        finally:
            self.ended += 1


def test_tasks_end_before_the_exception_gets_out():
    tasks = Tasks()

    def be_told(halt):
        with suppress(Exception):
            halt.run(tasks)

    def start_two():
        with Halt() as halt:
            for _ in range(2):
                threading.Thread(target=be_told, args=[halt], daemon=True).start()
                assert tasks.begun.acquire(timeout=60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start_two()
    assert tasks.ended == 2


def test_a_task_that_comes_too_late_does_not_begin():
    tasks = Tasks()
    with pytest.raises(ZeroDivisionError), Halt() as halt:
        raise ZeroDivisionError
    with pytest.raises(Exception, match=r"^$"):
        halt.run(tasks)
    assert not tasks.begun.acquire(blocking=False)


def test_nobody_is_asked_to_end_otherwise():
    end_if_asked()
    with Halt() as halt:
        assert halt.run(pow, 2, 3) == 8
        assert pickle.loads(pickle.dumps(halt)).run(pow, 2, 3) == 8
    end_if_asked()


@pytest.mark.parametrize("jobs", [None, 2])
def test_ctrl_c_ends_the_folds_of_a_search(jobs, monkeypatch):
    tasks = Tasks()
    monkeypatch.setattr(CrossValidated, "_score_fold", lambda *arguments: tasks())

    def press():
        tasks.begun.acquire(timeout=60)
        if jobs:
            tasks.begun.acquire(timeout=60)
        signal.raise_signal(signal.SIGINT)

    X = np.random.default_rng(0).standard_normal((30, 3))
    model = ds.DAPRegressorCV("l1", alphas=3, n_jobs=jobs)
    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, X[:, 0])
    assert tasks.ended == (jobs or 1)
