"""What people look at: tables, plots and a page in one file, from what runs and experiments left behind."""
