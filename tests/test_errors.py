from twoscale.errors import TwoscaleError, did_you_mean, missing_extra, unknown_name


def test_the_error_is_a_value_error():
    assert issubclass(TwoscaleError, ValueError)


def test_a_missing_extra_names_package_and_remedy():
    error = missing_extra("zarr", "data")
    assert isinstance(error, TwoscaleError)
    assert str(error) == "this needs the package 'zarr': pip install 'twoscale[data]'"


def test_the_nearest_name_is_pointed_out():
    known = ["two-scale", "local", "fno"]
    assert did_you_mean("two_scale", known) == " (did you mean two-scale?)"
    assert did_you_mean("FNO", known) == " (did you mean fno?)"
    assert did_you_mean("magic", known) == ""


def test_an_unknown_name_is_one_sentence():
    error = unknown_name("study", "hedline", ["headline", "darcy"], also="; or give a YAML file")
    assert str(error) == (
        "no study is called 'hedline' (did you mean headline?): known are headline, darcy; "
        "or give a YAML file"
    )
