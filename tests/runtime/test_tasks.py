import pytest

from twoscale.runtime.tasks import Abandoned, Caller, called_by, caller


def test_a_task_of_this_process_is_always_waited_for():
    caller().check()
    caller().tell("nobody hears this")


def test_a_task_knows_who_asked_for_it():
    heard = []
    with called_by(Caller(lambda: bool(heard), heard.append)):
        with pytest.raises(Abandoned, match="nobody waits"):
            caller().check()
        caller().tell(["training", "1/2"])
        caller().check()
    assert heard == [["training", "1/2"]]
    caller().check()
