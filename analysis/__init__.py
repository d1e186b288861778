"""Analysis: from run directories to tables, figures, statistics, the report and tracking."""
