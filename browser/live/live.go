package live

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"satchel/agent"
	"satchel/agent/links"
	"satchel/browser"
	"satchel/store"
)

// callTimeout limits a call to the browser that should take milliseconds.
const callTimeout = 5 * time.Second

// Options configure live views.
type Options struct {
	Browser   *browser.Browser
	PublicURL string       // where people reach this server, without a slash at the end
	Log       *slog.Logger // nil: slog.Default()
}

// Live provides live views of open sessions. Create it with New.
type Live struct {
	options Options
	log     *slog.Logger
	links   *links.Signer

	mu         sync.Mutex
	life       context.Context // ends with Stop; nil while it is stopped
	stop       context.CancelFunc
	running    sync.WaitGroup
	casts      map[*browser.Page]*cast
	icons      map[*browser.Page]string // data URLs, for open tabs
	recordings map[*browser.Session]*recording
	takeovers  map[string]*takeover // open ones, by session
}

// New returns a Live. Nothing can be watched before Start.
func New(o Options) *Live {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Live{
		options:    o,
		log:        o.Log,
		links:      signer(o),
		casts:      map[*browser.Page]*cast{},
		icons:      map[*browser.Page]string{},
		recordings: map[*browser.Session]*recording{},
		takeovers:  map[string]*takeover{},
	}
}

// signer returns the signer of links, which is that of the data folder, so that it finds
// them in what is stored.
func signer(o Options) *links.Signer {
	var s *links.Signer
	if folder := o.folder(); folder != nil {
		s = folder.Links()
	} else {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails, see crypto/rand
		s = links.New(key)
	}
	s.Serve(o.PublicURL)
	return s
}

func (o *Options) folder() *store.Folder {
	if o.Browser == nil {
		return nil
	}
	return o.Browser.Folder()
}

// Start allows sessions to be watched until Stop.
func (l *Live) Start(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life == nil {
		l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	}
	return nil
}

// Stop ends every cast, recording and takeover, and waits until all of them have ended.
// Viewers of tabs then get an error from Next.
func (l *Live) Stop() {
	l.mu.Lock()
	if l.life == nil {
		l.mu.Unlock()
		return
	}
	l.stop()
	l.mu.Unlock()
	l.running.Wait()
	l.mu.Lock()
	l.life = nil
	l.mu.Unlock()
}

// spawnLocked runs a goroutine that Stop waits for. Its context ends with Stop.
func (l *Live) spawnLocked(run func(context.Context)) error {
	if l.life == nil || l.life.Err() != nil {
		return errStopping
	}
	life := l.life
	l.running.Go(func() { run(life) })
	return nil
}

// errStopping is the error for requests while the server is stopping.
var errStopping = agent.Errorf(agent.CodeBrowser, "the server is stopping").Because(errors.New("live: stopped"))
