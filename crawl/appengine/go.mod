module google.golang.org/appengine

go 1.26.0
