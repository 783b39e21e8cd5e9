from twoscale.errors import TwoscaleError, missing_extra


def test_the_error_is_a_value_error():
    assert issubclass(TwoscaleError, ValueError)


def test_a_missing_extra_names_package_and_remedy():
    error = missing_extra("zarr", "data")
    assert isinstance(error, TwoscaleError)
    assert str(error) == "this needs the package 'zarr': pip install 'twoscale[data]'"
