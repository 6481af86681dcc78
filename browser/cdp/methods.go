package cdp

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// pageDomains are the domains whose commands are passed on in sessions with pages,
// frames and workers, except those in refused and those with a check.
var pageDomains = set(`Accessibility Audits CSS Console DOM DOMDebugger DOMSnapshot DOMStorage Debugger Emulation Fetch HeapProfiler IO Input
	Log Network Overlay Page Performance Profiler Runtime Security ServiceWorker WebAuthn`)

// refused are commands of the allowed domains that read or write files of this
// machine, or bypass a check.
var refused = set(`DOM.setFileInputFiles DOM.getFileInfo Page.setDownloadBehavior Network.loadNetworkResource
	Network.setRequestInterception Network.continueInterceptedRequest`)

// check modifies the parameters of a command, or returns why it is refused.
type check func(f *Filter, c *Command) error

// checks has the commands that are not simply passed on. If root is true, they may be
// sent to the browser as a whole.
var checks = map[string]struct {
	root  bool
	check check
}{
	"Browser.getVersion":          {true, pass},
	"Browser.setDownloadBehavior": {true, ignore}, // the server keeps downloads
	"Browser.getWindowForTarget":  {true, ofTarget},
	"Browser.getWindowBounds":     {true, pass},
	"Browser.setWindowBounds":     {true, pass},
	"Browser.setContentsSize":     {true, pass},
	"Browser.grantPermissions":    {true, inContext},
	"Browser.setPermission":       {true, inContext},
	"Browser.resetPermissions":    {true, inContext},
	"Browser.cancelDownload":      {true, inContext},
	"Storage.getCookies":          {true, inContext},
	"Storage.setCookies":          {true, inContext},
	"Storage.clearCookies":        {true, inContext},
	"Target.getBrowserContexts":   {true, noContexts},
	"Target.createTarget":         {true, createTarget},
	"Target.closeTarget":          {true, ofKnownTarget},
	"Target.activateTarget":       {true, ofKnownTarget},
	"Target.attachToTarget":       {true, attachToTarget},
	"Target.detachFromTarget":     {true, detachFromTarget},
	"Target.getTargetInfo":        {true, ofTarget},
	"Target.getTargets":           {true, getTargets},
	"Target.setAutoAttach":        {true, flat},
	"Target.setDiscoverTargets":   {true, pass},
	"Page.navigate":               {check: toURL},
	"Fetch.continueRequest":       {check: toURL},
	"Fetch.fulfillRequest":        {check: respond},
	"Fetch.continueResponse":      {check: respond},
	"Input.dispatchDragEvent":     {check: drag},
}

// resuming are commands that let a page continue. They are passed on while others wait
// for a person.
var resuming = set(`Runtime.runIfWaitingForDebugger Debugger.resume Debugger.disable Target.detachFromTarget
	Fetch.continueRequest Fetch.continueResponse Fetch.continueWithAuth Fetch.failRequest Fetch.fulfillRequest Fetch.disable`)

// Resumes reports whether a command lets a waiting page continue.
func (c *Command) Resumes() bool {
	_, ok := resuming[c.Method]
	return ok
}

var (
	errRefused  = errors.New("this session does not allow it")
	errTarget   = errors.New("there is no such target in this session")
	errContext  = errors.New("a session has one browser context")
	errSession  = errors.New("there is no such session")
	errFlat     = errors.New("flatten must be true")
	errFiles    = errors.New("files of the server cannot be used; send their content")
	errRedirect = errors.New("the address of the redirect may not be opened")
)

// checkLocked checks a command, and may modify or answer it.
func (f *Filter) checkLocked(c *Command) error {
	if rule, ok := checks[c.Method]; ok {
		if c.session == "" && !rule.root {
			return errRefused
		}
		return rule.check(f, c)
	}
	domain, _, _ := strings.Cut(c.Method, ".")
	_, passes := pageDomains[domain]
	if _, no := refused[c.Method]; no || !passes || c.session == "" {
		return errRefused
	}
	return nil
}

// read decodes the parameters, which are then encoded again.
func (c *Command) read() error {
	c.params = map[string]json.RawMessage{}
	if c.raw == nil {
		return nil
	}
	return json.Unmarshal(c.raw, &c.params)
}

// text returns a parameter that must be a string; "" if it is missing.
func (c *Command) text(name string) (string, error) {
	raw, ok := c.params[name]
	if !ok {
		return "", nil
	}
	var text *string
	if json.Unmarshal(raw, &text) != nil || text == nil {
		return "", errors.New(name + " must be a string")
	}
	c.params[name] = encode(text)
	return *text, nil
}

func pass(*Filter, *Command) error { return nil }

func ignore(_ *Filter, c *Command) error {
	c.answer = struct{}{}
	return nil
}

// noContexts answers with an empty list: clients then use the only context as their
// default.
func noContexts(_ *Filter, c *Command) error {
	c.answer = map[string][]string{"browserContextIds": {}}
	return nil
}

// inContext makes a command apply to the session's context.
func inContext(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	if given, err := c.text("browserContextId"); err != nil || given != "" && given != f.o.Context {
		return errContext
	}
	c.params["browserContextId"] = encode(f.o.Context)
	return nil
}

// ofTarget checks the target, if there is one.
func ofTarget(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	id, err := c.text("targetId")
	if _, known := f.targets[id]; err != nil || id != "" && !known {
		return errTarget
	}
	return nil
}

func ofKnownTarget(f *Filter, c *Command) error {
	if err := ofTarget(f, c); err != nil {
		return err
	}
	if c.params["targetId"] == nil {
		return errTarget
	}
	return nil
}

// flat requires sessions that the Filter sees.
func flat(_ *Filter, c *Command) error {
	if c.params == nil {
		if err := c.read(); err != nil {
			return err
		}
	}
	var flatten bool
	if err := json.Unmarshal(c.params["flatten"], &flatten); err != nil || !flatten {
		return errFlat
	}
	return nil
}

func attachToTarget(f *Filter, c *Command) error { return errors.Join(ofKnownTarget(f, c), flat(f, c)) }

func detachFromTarget(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	id, err := c.text("sessionId")
	if _, own := f.sessions[id]; err != nil || !own {
		return errSession
	}
	delete(c.params, "targetId")
	return nil
}

// targetParams are the parameters of Target.createTarget that are passed on.
var targetParams = set("url left top width height windowState newWindow background forTab focus browserContextId")

func createTarget(f *Filter, c *Command) error {
	if err := errors.Join(inContext(f, c), f.checkURL(c)); err != nil {
		return err
	}
	for name := range c.params {
		if _, ok := targetParams[name]; !ok {
			delete(c.params, name)
		}
	}
	c.result = func(f *Filter, result json.RawMessage) json.RawMessage {
		f.rememberLocked(infoIn(result).TargetID)
		return result
	}
	return nil
}

func getTargets(_ *Filter, c *Command) error {
	c.result = func(f *Filter, result json.RawMessage) json.RawMessage {
		var all struct {
			TargetInfos []json.RawMessage `json:"targetInfos"`
		}
		_ = json.Unmarshal(result, &all) // sent by Chromium, so valid
		shown := []json.RawMessage{}
		for _, raw := range all.TargetInfos {
			var t targetInfo
			if json.Unmarshal(raw, &t) == nil && f.seeLocked(t, true) {
				shown = append(shown, raw)
			}
		}
		return encode(map[string]any{"targetInfos": shown})
	}
	return nil
}

// toURL checks the address that a page is to open.
func toURL(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	return f.checkURL(c)
}

func (f *Filter) checkURL(c *Command) error {
	address, err := c.text("url")
	if err != nil || address == "" {
		return err
	}
	if address, err = f.o.CheckURL(address); err != nil {
		return err
	}
	c.params["url"] = encode(address)
	return nil
}

// respond checks a response that replaces a server's: it may not redirect to where
// Page.navigate may not go.
func respond(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	if _, ok := c.params["binaryResponseHeaders"]; ok {
		return errors.New("use responseHeaders in place of binaryResponseHeaders")
	}
	raw, ok := c.params["responseHeaders"]
	if !ok {
		return nil
	}
	var headers []map[string]string
	if err := json.Unmarshal(raw, &headers); err != nil {
		return errors.New("responseHeaders must be a list of names and values")
	}
	for _, h := range headers {
		if !strings.EqualFold(strings.TrimSpace(h["name"]), "location") {
			continue
		}
		to, err := url.Parse(strings.TrimSpace(h["value"]))
		if err != nil {
			return errRedirect
		}
		if to.Scheme == "" {
			continue // on the same server, or on one that the proxy checks
		}
		if _, err := f.o.CheckURL(to.String()); err != nil {
			return errRedirect
		}
	}
	c.params["responseHeaders"] = encode(headers)
	return nil
}

// drag refuses to drop files, which would be read from this machine.
func drag(_ *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	var data map[string]json.RawMessage
	if raw, ok := c.params["data"]; ok {
		if err := json.Unmarshal(raw, &data); err != nil {
			return errors.New("data must be an object")
		}
		if _, ok := data["files"]; ok {
			return errFiles
		}
		c.params["data"] = encode(data)
	}
	return nil
}
