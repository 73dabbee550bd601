"""Hours of ordinary use of one folder, with samples of what its processes and files take. Run it with `make soak`.

Processes write, ask, serve HTTP, follow a stream and keep the semantic index, at a rate that leaves most of a core
free:

* `load` is what a process of the load has: a rate, counts, errors, and a leak that a test asks for.
* `writer` publishes, keeps, corrects and forgets; `reader` puts all questions to the folder; `client` puts them to the
  server over HTTP and follows a stream. `questions` has the questions.
* `run` starts them with a server and samples them (`sampling`); at the end it verifies the folder.
* `trends` judges the samples, `report` shows them.
"""
