// Package urlfetch takes the place of the package that gocolly/colly imports for programs
// on Google App Engine. Only Collector.Appengine calls it, which Satchel never does, and
// the original would link Protocol Buffers into the program.
package urlfetch

import (
	"context"
	"net/http"
)

// Client panics: requests go through agent/egress only.
func Client(context.Context) *http.Client {
	panic("urlfetch: this program does not run on App Engine")
}
