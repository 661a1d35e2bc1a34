"""One module per format of files, behind one interface; endings of names tell which."""
