module timed

go 1.26
