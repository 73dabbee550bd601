"""Documents of a workspace as files of a folder."""
