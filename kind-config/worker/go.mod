module schedspec.local/worker

go 1.26.0
