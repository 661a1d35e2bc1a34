"""What people see: pictures, pages, tables, a live display. Imported when it is needed."""
