package browser

import (
	"context"
	"encoding/base64"
	"regexp"
	"strings"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
	"satchel/agent/egress"
)

// blankPage is the only URL that is not on the network.
const blankPage = "about:blank"

// checkURL rejects URLs that are not on the network, and addresses that may not
// be reached, as far as their text shows.
func (b *Browser) checkURL(action, raw string) (string, error) {
	if raw == blankPage {
		return raw, nil
	}
	u, err := b.guard.CheckURL(strings.TrimSpace(raw))
	if err != nil {
		return "", agent.InvalidAction(action, "url", "cannot be opened: "+egress.Explain(err).Message).Because(err)
	}
	return u.String(), nil
}

func (st *step) waitUntil() *playwright.WaitUntilState {
	if st.WaitUntil == "" {
		return playwright.WaitUntilStateLoad
	}
	state := playwright.WaitUntilState(st.WaitUntil)
	return &state
}

func navigate(ctx context.Context, st *step) (map[string]any, error) {
	url, err := st.session.browser.checkURL("navigate", st.URL)
	if err != nil {
		return nil, err
	}
	response, err := st.page.page.Goto(url, playwright.PageGotoOptions{
		WaitUntil: st.waitUntil(),
		Timeout:   st.milliseconds(),
	})
	if err != nil && strings.Contains(err.Error(), `interrupted by another navigation to "`+errorPages) {
		// The error page of an earlier failure arrived late.
		response, err = st.page.page.Goto(url, playwright.PageGotoOptions{
			WaitUntil: st.waitUntil(),
			Timeout:   st.milliseconds(),
		})
	}
	if err != nil {
		if strings.Contains(err.Error(), "ERR_ABORTED") || strings.Contains(err.Error(), "Download is starting") {
			if st.await(ctx, st.downloadStarted) {
				return map[string]any{"download": true}, nil
			}
			return nil, err
		}
		// The error page would interrupt the next load.
		st.await(ctx, func() bool {
			return strings.HasPrefix(st.page.URL(), errorPages)
		})
		return nil, err
	}
	return st.loadResult(response)
}

// errorPages is the prefix of the URLs of pages that Chromium shows when a load
// has failed.
const errorPages = "chrome-error:"

// downloadStarted reports whether a download has started since the action did.
func (st *step) downloadStarted() bool {
	st.session.mu.Lock()
	defer st.session.mu.Unlock()
	return st.session.lastDownload.After(st.started)
}

// await waits at most a second for a change of the session.
func (st *step) await(ctx context.Context, ok func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	changed, end := st.session.Changes()
	defer end()
	for !ok() {
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// loadResult returns the result of a load.
func (st *step) loadResult(response playwright.Response) (map[string]any, error) {
	result := map[string]any{}
	if response == nil {
		return result, nil // a blank page, or a move within the page
	}
	switch response.Headers()[strings.ToLower(egress.ProxyFailureHeader)] {
	case "":
	case egress.ProxyRefused:
		return nil, agent.InvalidAction(st.Action.Action, "url", "leads to an address that this server may not reach")
	default:
		return nil, agent.Errorf(agent.CodeBrowser, "the page could not be loaded").
			With("action", st.Action.Action).
			With("reason", "ERR_CONNECTION_FAILED")
	}
	result["status"] = response.Status()
	return result, nil
}

func back(_ context.Context, st *step) (map[string]any, error) {
	r, err := st.page.page.GoBack(playwright.PageGoBackOptions{WaitUntil: st.waitUntil(), Timeout: st.milliseconds()})
	return st.afterLoad(r, err)
}

func forward(_ context.Context, st *step) (map[string]any, error) {
	r, err := st.page.page.GoForward(playwright.PageGoForwardOptions{
		WaitUntil: st.waitUntil(),
		Timeout:   st.milliseconds(),
	})
	return st.afterLoad(r, err)
}

func reload(_ context.Context, st *step) (map[string]any, error) {
	r, err := st.page.page.Reload(playwright.PageReloadOptions{WaitUntil: st.waitUntil(), Timeout: st.milliseconds()})
	return st.afterLoad(r, err)
}

func (st *step) afterLoad(response playwright.Response, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	return st.loadResult(response)
}

// Navigate opens a URL in a tab under the rules of the navigate action, and
// waits for the first bytes of the response.
func (p *Page) Navigate(ctx context.Context, url string) error {
	url, err := p.session.browser.checkURL("navigate", url)
	if err != nil {
		return err
	}
	return p.session.call(ctx, func() error {
		_, err := p.page.Goto(url, playwright.PageGotoOptions{WaitUntil: playwright.WaitUntilStateCommit})
		return err
	})
}

// Move is a move through the history of a tab.
type Move string

// The moves of History.
const (
	Back    Move = "back"
	Forward Move = "forward"
	Reload  Move = "reload"
)

// History moves a tab through its history and waits for the first bytes of the
// response.
func (p *Page) History(ctx context.Context, m Move) error {
	return p.session.call(ctx, func() (err error) {
		commit := playwright.WaitUntilStateCommit
		switch m {
		case Back:
			_, err = p.page.GoBack(playwright.PageGoBackOptions{WaitUntil: commit})
		case Forward:
			_, err = p.page.GoForward(playwright.PageGoForwardOptions{WaitUntil: commit})
		default:
			_, err = p.page.Reload(playwright.PageReloadOptions{WaitUntil: commit})
		}
		return err
	})
}

// dataURL encodes bytes as a data URL.
func dataURL(media string, data []byte) string {
	return "data:" + media + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// maxPicture is the largest screenshot or PDF, in bytes.
const maxPicture = 32 << 20

func screenshot(_ context.Context, st *step) (map[string]any, error) {
	format, media := playwright.ScreenshotTypePng, "image/png"
	if st.Format == "jpeg" {
		format, media = playwright.ScreenshotTypeJpeg, "image/jpeg"
	}
	var data []byte
	var err error
	if st.Selector != "" {
		data, err = st.element().Screenshot(playwright.LocatorScreenshotOptions{
			Type:    format,
			Timeout: st.milliseconds(),
		})
	} else {
		data, err = st.page.page.Screenshot(playwright.PageScreenshotOptions{
			FullPage: &st.FullPage,
			Type:     format,
			Timeout:  st.milliseconds(),
		})
	}
	if err != nil {
		return nil, err
	}
	return st.picture("image", media, data)
}

func pdf(_ context.Context, st *step) (map[string]any, error) {
	if !st.session.chromium.headless {
		return nil, agent.InvalidAction("pdf", "action", "needs a headless session")
	}
	data, err := st.page.page.PDF()
	if err != nil {
		return nil, err
	}
	return st.picture("data", "application/pdf", data)
}

func (st *step) picture(field, media string, data []byte) (map[string]any, error) {
	if len(data) > maxPicture {
		return nil, agent.Errorf(agent.CodeBrowser, "the page is too large for this").
			With("action", st.Action.Action).
			With("limit_bytes", maxPicture)
	}
	return map[string]any{field: dataURL(media, data)}, nil
}

// defaultSnapshot is the default length of a snapshot, in characters.
const defaultSnapshot = 20_000

func snapshot(_ context.Context, st *step) (map[string]any, error) {
	element := st.page.page.Locator("body")
	if st.Selector != "" {
		element = st.element()
	}
	text, err := element.AriaSnapshot(playwright.LocatorAriaSnapshotOptions{
		Ref:     playwright.Bool(true),
		Timeout: st.milliseconds(),
	})
	if err != nil {
		return nil, err
	}
	if text, err = st.maskSecrets(element, text); err != nil {
		return nil, err
	}
	limit := st.MaxLength
	if limit == 0 {
		limit = defaultSnapshot
	}
	result := map[string]any{"text": text}
	if runes := []rune(text); len(runes) > limit {
		short := string(runes[:limit])
		if end := strings.LastIndexByte(short, '\n'); end > 0 {
			short = short[:end]
		}
		result["text"], result["truncated"] = short, true
	}
	return result, nil
}

// fieldLine is a line of a snapshot with the value of a field.
var fieldLine = agent.Pattern(`(?m)^(\s*- [a-z]+ .*\[ref=(\w+)\](?: \[[^\]]*\])*): .+$`)

// hiddenLineEnd matches the end of a line whose value is a hidden one, see Session.Hide.
var hiddenLineEnd = agent.Pattern(`^: "?%[^%]+%"?$`)

// maskSecrets masks the values of secret fields in the snapshot of an element, except
// those that the session shows by name.
func (st *step) maskSecrets(element playwright.Locator, text string) (string, error) {
	filled, err := element.Locator("input").EvaluateAll("list => list.some(e => e.value && " + isSecret + "(e))")
	if err != nil || filled != true {
		return text, err
	}
	text = fieldLine().ReplaceAllStringFunc(text, func(line string) string {
		parts := fieldLine().FindStringSubmatch(line)
		if err != nil {
			return line
		}
		var secret any
		if secret, err = st.page.page.Locator("aria-ref="+parts[2]).Evaluate(
			isSecret,
			nil,
			playwright.LocatorEvaluateOptions{Timeout: st.milliseconds()},
		); secret != true {
			return line
		}
		if value := st.session.Hidden(line[len(parts[1]):]); hiddenLineEnd().MatchString(value) {
			return parts[1] + value
		}
		return parts[1] + ": \"" + masked + "\""
	})
	return text, err
}

func cookies(_ context.Context, st *step) (map[string]any, error) {
	var urls []string
	if st.URL != "" {
		urls = []string{st.URL}
	}
	found, err := st.session.context.Cookies(urls...)
	if err != nil {
		return nil, err
	}
	return map[string]any{"cookies": found}, nil
}

// urlGlob compiles a URL pattern in which ** matches anything and * anything
// except a slash.
func urlGlob(pattern string) *regexp.Regexp {
	text := regexp.QuoteMeta(pattern)
	text = strings.ReplaceAll(text, `\*\*`, "\x00")
	text = strings.ReplaceAll(text, `\*`, "[^/]*")
	return regexp.MustCompile("^" + strings.ReplaceAll(text, "\x00", ".*") + "$")
}
