from twoscale.runtime.texts import duration_text, percent, short_duration_text


def test_durations_as_they_are_told():
    told = [duration_text(seconds) for seconds in (135.4, 10.2, 3.44, 0.5, 0.0321, 0.0)]
    assert told == ["135 s", "10 s", "3.4 s", "0.5 s", "0.032 s", "0.001 s"]


def test_short_times_have_a_unit_that_suits_them():
    told = [short_duration_text(seconds) for seconds in (0.00025, 0.0994, 0.0999, 0.5, 2500.0)]
    assert told == ["0.25 ms", "99 ms", "0.1 s", "0.5 s", "2500 s"]


def test_shares_in_percent():
    told = [percent(share) for share in (0.0, 0.000841, 1.0, 12.0, 3.2e-7, 3.2e-12)]
    assert told == ["0 %", "0.0841 %", "100 %", "1.2e+03 %", "0.000032 %", "3.2e-10 %"]
