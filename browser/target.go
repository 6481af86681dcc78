//lint:file-ignore SA1019 A handle stays on the element that was checked; a locator may find another.

package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/playwright-community/playwright-go"

	"satchel/agent"
)

// Target is an element of a page.
type Target struct {
	Selector string // matches exactly this element, also in a later document; "" if none does
	Secret   bool   // it is a field for a password, a one-time code or payment card data
}

// isSecret reports whether a field is for a secret.
const isSecret = `(e => e.type === "password" || /password|one-time-code|^cc-/.test(e.autocomplete || ""))`

// masked replaces what was typed into a field for a secret.
const masked = "********"

// isOnlyMatch reports whether an element is the only one that a selector matches.
const isOnlyMatch = `(found, e) => found.length === 1 && found[0] === e`

// describeElement returns whether a field is for a secret, and CSS selectors for the
// element: first by attributes that are usually stable, then by its position.
const describeElement = `e => {
	const quote = v => JSON.stringify(v), tag = e.localName, css = [];
	for (const name of ["data-testid", "data-test", "id", "name", "aria-label", "placeholder", "href"]) {
		const value = e.getAttribute(name);
		if (value && value.length <= 200) css.push(tag + "[" + name + "=" + quote(value) + "]");
	}
	const path = [];
	for (let at = e; at && at.nodeType === 1 && path.length < 30; at = at.parentElement) {
		if (at.id && at !== e) { path.unshift("[id=" + quote(at.id) + "]"); break; }
		const same = at.parentElement ? [...at.parentElement.children].filter(o => o.localName === at.localName) : [];
		path.unshift(at.localName + (same.length > 1 ? ":nth-of-type(" + (same.indexOf(at) + 1) + ")" : ""));
	}
	css.push(path.join(" > "));
	return {css, secret: ` + isSecret + `(e)};
}`

// Locate describes the element that a selector matches, such as one of a snapshot. The
// candidates are selectors to try first for finding the element again.
func (session *Session) Locate(
	ctx context.Context,
	selector string,
	milliseconds int,
	candidates ...string,
) (t Target, err error) {
	_, err = session.perform(
		ctx,
		agent.Action{Action: "locate", Selector: selector, Timeout: &milliseconds},
		func(_ context.Context, st *step) (map[string]any, error) {
			t, err = st.locate(candidates)
			return nil, err
		},
	)
	return t, err
}

func (st *step) locate(candidates []string) (target Target, err error) {
	handle, err := st.element().ElementHandle(playwright.LocatorElementHandleOptions{Timeout: st.milliseconds()})
	if err != nil {
		return target, err
	}
	defer func() { _ = handle.Dispose() }() // otherwise it is released with its document
	got, err := handle.Evaluate(describeElement, nil)
	if err != nil {
		return target, err
	}
	about, _ := got.(map[string]any)
	target.Secret = about["secret"] != false
	css, _ := about["css"].([]any)
	for _, c := range css {
		if text, ok := c.(string); ok && len(text) <= 2_000 {
			candidates = append(candidates, text)
		}
	}
	for _, c := range candidates {
		only, err := st.page.page.Locator(c).EvaluateAll(isOnlyMatch, handle)
		if err == nil && only == true {
			target.Selector = c
			break
		}
	}
	return target, nil
}

// MatchOnce reports whether each of the selectors matches exactly one element of the active
// tab.
func (session *Session) MatchOnce(ctx context.Context, selectors []string) (fits bool, err error) {
	_, err = session.perform(
		ctx,
		agent.Action{Action: "locate"},
		func(_ context.Context, st *step) (map[string]any, error) {
			for _, selector := range selectors {
				if n, err := st.page.page.Locator(selector).Count(); err != nil || n != 1 {
					return nil, nil
				}
			}
			fits = true
			return nil, nil
		},
	)
	return fits, err
}

// Fill replaces the content of a field with a text, if allowed returns nil for the URL
// of the document that contains the field. The text is never entered into another
// document. The log contains the action as given, without the text.
func (session *Session) Fill(
	ctx context.Context,
	action agent.Action,
	text string,
	allowed func(document *url.URL) error,
) (map[string]any, error) {
	if err := action.Validate(""); err != nil {
		return nil, err
	}
	return session.logged(ctx, &step{
		Action: &action,
		perform: func(_ context.Context, st *step) (map[string]any, error) {
			st.showsText.Store(true)
			handle, err := st.element().ElementHandle(playwright.LocatorElementHandleOptions{
				Timeout: st.milliseconds(),
			})
			if err != nil {
				return nil, err
			}
			defer func() { _ = handle.Dispose() }() // otherwise it is released with its document
			frame, err := handle.OwnerFrame()
			if err != nil {
				return nil, err
			}
			if frame == nil {
				return nil, errors.New("browser: the element has no document")
			}
			document, err := url.Parse(frame.URL())
			if err != nil {
				return nil, fmt.Errorf("browser: the URL of a document: %w", err)
			}
			if err := allowed(document); err != nil {
				return nil, err
			}
			return nil, st.enter(handle, text, true, false)
		},
	})
}

// How long Settle waits: before it checks whether the page is loading, and for the
// load.
const (
	settlePause = 150 * time.Millisecond
	settleLoad  = 5 * time.Second
)

// Settle briefly waits for the effects of an action, such as the load of another page
// or changes of this one, and returns the location of the active tab.
func (session *Session) Settle(ctx context.Context) (address, title string, err error) {
	select {
	case <-time.After(settlePause):
	case <-session.Done():
	case <-ctx.Done():
		return "", "", ctx.Err()
	}
	at, err := session.perform(
		ctx,
		agent.Action{Action: "wait"},
		func(_ context.Context, st *step) (map[string]any, error) {
			err := st.page.page.WaitForLoadState(playwright.PageWaitForLoadStateOptions{
				State:   playwright.LoadStateLoad,
				Timeout: playwright.Float(float64(settleLoad.Milliseconds())),
			})
			if errors.Is(err, playwright.ErrTimeout) {
				err = nil // a page that never finishes loading is used as it is
			}
			return nil, err
		},
	)
	address, _ = at["url"].(string)
	title, _ = at["title"].(string)
	return address, title, err
}

// Peek is Do for an action that changes nothing and is not logged.
func (session *Session) Peek(ctx context.Context, a agent.Action) (map[string]any, error) {
	if err := a.Validate(""); err != nil {
		return nil, err
	}
	return session.perform(ctx, a, nil)
}

// perform runs how in the active tab like an action, or the action itself if how is
// nil. It is not logged.
func (session *Session) perform(
	ctx context.Context,
	a agent.Action,
	how func(context.Context, *step) (map[string]any, error),
) (map[string]any, error) {
	st := &step{
		Action:  &a,
		session: session,
		started: time.Now(),
		perform: how,
	}
	return st.do(ctx)
}
