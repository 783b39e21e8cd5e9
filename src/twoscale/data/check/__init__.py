"""What is wrong, odd or fine about a dataset, in sentences."""

from twoscale.data.check.checker import check_dataset
from twoscale.data.check.fields import layout_findings
from twoscale.data.check.finding import Finding

__all__ = ["Finding", "check_dataset", "layout_findings"]
