package live

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/browser"
)

// Limits of a page's icon.
const (
	maxIcon   = 32 << 10               // bytes of the image
	iconDelay = 700 * time.Millisecond // after a change of address, for the page to declare its icon
)

// icons finds the icon of each page that a tab shows. Chromium loads it, so it is
// requested through the session's proxy and with its cookies.
type icons struct {
	cdp     playwright.CDPSession
	cast    *cast
	running sync.WaitGroup

	mu      sync.Mutex
	address string // address whose icon was fetched last
	busy    bool
}

// refresh fetches the icon for a new address, unless a fetch is in progress.
func (i *icons) refresh(ctx context.Context, address string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy || address == i.address {
		return
	}
	i.busy, i.address = true, address
	i.running.Go(func() {
		i.cast.live.setIcon(i.cast.page, i.fetch(ctx, address))
		i.mu.Lock()
		i.busy = false
		i.mu.Unlock()
		i.cast.refresh()
	})
}

// setIcon stores the icon of a tab while the tab is open.
func (l *Live) setIcon(p *browser.Page, icon string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.icons[p] = icon
	for page := range l.icons {
		select {
		case <-page.Done():
			delete(l.icons, page)
		default:
		}
	}
}

// icon returns the known icon of a tab, or "".
func (l *Live) icon(p *browser.Page) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.icons[p]
}

// iconScript returns the address of the icon that a page declares, or the default one.
const iconScript = `(document.querySelector('link[rel~="icon" i][href]') || {href: ` +
	`location.origin + "/favicon.ico"}).href`

func (i *icons) fetch(ctx context.Context, address string) string {
	if !strings.HasPrefix(address, "http") {
		return ""
	}
	select {
	case <-ctx.Done():
		return ""
	case <-time.After(iconDelay):
	}
	answer, err := call(ctx, i.cdp, "Runtime.evaluate", map[string]any{
		"expression":    iconScript,
		"returnByValue": true,
		"timeout":       1000,
	})
	if err != nil {
		return ""
	}
	result, _ := answer["result"].(map[string]any)
	href, _ := result["value"].(string)
	switch {
	case strings.HasPrefix(href, "data:image/") && len(href) <= maxIcon*4/3:
		return href
	case strings.HasPrefix(href, "http:"), strings.HasPrefix(href, "https:"):
		return i.load(ctx, href)
	}
	return ""
}

// load has Chromium fetch an image and returns it as a data URL, or "" if it is not an
// image or too large.
func (i *icons) load(ctx context.Context, href string) string {
	tree, err := call(ctx, i.cdp, "Page.getFrameTree", map[string]any{})
	if err != nil {
		return ""
	}
	top, _ := tree["frameTree"].(map[string]any)
	frame, _ := top["frame"].(map[string]any)
	answer, err := call(ctx, i.cdp, "Network.loadNetworkResource", map[string]any{
		"frameId": frame["id"],
		"url":     href,
		"options": map[string]any{"disableCache": false, "includeCredentials": true},
	})
	if err != nil {
		return ""
	}
	resource, _ := answer["resource"].(map[string]any)
	stream, _ := resource["stream"].(string)
	if stream == "" {
		return ""
	}
	defer func() {
		_ = send(ctx, i.cdp, "IO.close", map[string]any{"handle": stream})
	}()
	image := i.read(ctx, stream)
	kind := imageKind(image)
	if kind == "" {
		return ""
	}
	return "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(image)
}

// read reads one of Chromium's streams, and returns nil if it is longer than maxIcon.
func (i *icons) read(ctx context.Context, stream string) []byte {
	var image []byte
	for len(image) <= maxIcon {
		part, err := call(ctx, i.cdp, "IO.read", map[string]any{"handle": stream, "size": maxIcon + 1})
		if err != nil {
			return nil
		}
		text, _ := part["data"].(string)
		chunk := []byte(text)
		if encoded, _ := part["base64Encoded"].(bool); encoded {
			if chunk, err = base64.StdEncoding.DecodeString(text); err != nil {
				return nil
			}
		}
		image = append(image, chunk...)
		if eof, _ := part["eof"].(bool); eof || len(chunk) == 0 {
			break
		}
	}
	if len(image) > maxIcon {
		return nil
	}
	return image
}

// imageKind returns the type of an image, detected from its first bytes regardless of
// the server's Content-Type.
func imageKind(image []byte) string {
	head := string(image[:min(len(image), 512)])
	switch {
	case strings.HasPrefix(head, "\x89PNG\r\n"):
		return "image/png"
	case strings.HasPrefix(head, "\x00\x00\x01\x00"):
		return "image/x-icon"
	case strings.HasPrefix(head, "GIF8"):
		return "image/gif"
	case strings.HasPrefix(head, "\xff\xd8\xff"):
		return "image/jpeg"
	case strings.HasPrefix(head, "RIFF") && strings.Contains(head[:min(len(head), 16)], "WEBP"):
		return "image/webp"
	case strings.Contains(head, "<svg"):
		return "image/svg+xml"
	}
	return ""
}
