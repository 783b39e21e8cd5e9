"""Pictures and pages made from runs and records."""
