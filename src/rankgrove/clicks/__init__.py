"""Click logs, models of users who click, judgements from clicks."""
