package cdp

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// pageDomains are the domains whose commands are passed on in sessions with pages,
// frames and workers, except those in refusedCommands and those with a check.
var pageDomains = set(`Accessibility Audits CSS Console DOM DOMDebugger DOMSnapshot DOMStorage Debugger Emulation Fetch HeapProfiler IO Input
	Log Network Overlay Page Performance Profiler Runtime Security ServiceWorker WebAuthn`)

// refusedCommands are commands of the allowed domains that read or write files of this
// machine, or bypass a check.
var refusedCommands = set(`DOM.setFileInputFiles DOM.getFileInfo Page.setDownloadBehavior Network.loadNetworkResource
	Network.setRequestInterception Network.continueInterceptedRequest`)

// check modifies the parameters of a command, or returns why it is refused.
type check func(f *Filter, c *Command) error

// checks has the commands that are not simply passed on. If root is true, they may be
// sent to the browser as a whole.
var checks = map[string]struct {
	root  bool
	check check
}{
	"Browser.getVersion":          {true, allow},
	"Browser.setDownloadBehavior": {true, answerEmpty}, // the server keeps downloads
	"Browser.getWindowForTarget":  {true, checkTarget},
	"Browser.getWindowBounds":     {true, allow},
	"Browser.setWindowBounds":     {true, allow},
	"Browser.setContentsSize":     {true, allow},
	"Browser.grantPermissions":    {true, setContext},
	"Browser.setPermission":       {true, setContext},
	"Browser.resetPermissions":    {true, setContext},
	"Browser.cancelDownload":      {true, setContext},
	"Storage.getCookies":          {true, setContext},
	"Storage.setCookies":          {true, setContext},
	"Storage.clearCookies":        {true, setContext},
	"Target.getBrowserContexts":   {true, answerNoContexts},
	"Target.createTarget":         {true, createTarget},
	"Target.closeTarget":          {true, checkKnownTarget},
	"Target.activateTarget":       {true, checkKnownTarget},
	"Target.attachToTarget":       {true, attachToTarget},
	"Target.detachFromTarget":     {true, detachFromTarget},
	"Target.getTargetInfo":        {true, checkTarget},
	"Target.getTargets":           {true, getTargets},
	"Target.setAutoAttach":        {true, requireFlat},
	"Target.setDiscoverTargets":   {true, allow},
	"Page.navigate":               {check: checkURLParam},
	"Fetch.continueRequest":       {check: checkURLParam},
	"Fetch.fulfillRequest":        {check: checkResponse},
	"Fetch.continueResponse":      {check: checkResponse},
	"Input.dispatchDragEvent":     {check: checkDrag},
}

// resumingCommands are commands that let a page continue. They are passed on while others wait
// for a person.
var resumingCommands = set(`Runtime.runIfWaitingForDebugger Debugger.resume Debugger.disable Target.detachFromTarget
	Fetch.continueRequest Fetch.continueResponse Fetch.continueWithAuth Fetch.failRequest Fetch.fulfillRequest Fetch.disable`)

// Resumes reports whether a command lets a waiting page continue.
func (c *Command) Resumes() bool {
	_, ok := resumingCommands[c.Method]
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
	if _, no := refusedCommands[c.Method]; no || !passes || c.session == "" {
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

func allow(*Filter, *Command) error { return nil }

func answerEmpty(_ *Filter, c *Command) error {
	c.answer = struct{}{}
	return nil
}

// answerNoContexts answers with an empty list: clients then use the only context as their
// default.
func answerNoContexts(_ *Filter, c *Command) error {
	c.answer = map[string][]string{"browserContextIds": {}}
	return nil
}

// setContext makes a command apply to the session's context.
func setContext(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	if given, err := c.text("browserContextId"); err != nil || given != "" && given != f.o.Context {
		return errContext
	}
	c.params["browserContextId"] = encode(f.o.Context)
	return nil
}

// checkTarget checks the target, if there is one.
func checkTarget(f *Filter, c *Command) error {
	if err := c.read(); err != nil {
		return err
	}
	id, err := c.text("targetId")
	if _, known := f.targets[id]; err != nil || id != "" && !known {
		return errTarget
	}
	return nil
}

func checkKnownTarget(f *Filter, c *Command) error {
	if err := checkTarget(f, c); err != nil {
		return err
	}
	if c.params["targetId"] == nil {
		return errTarget
	}
	return nil
}

// requireFlat requires sessions that the Filter sees.
func requireFlat(_ *Filter, c *Command) error {
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

func attachToTarget(f *Filter, c *Command) error {
	return errors.Join(checkKnownTarget(f, c), requireFlat(f, c))
}

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
	if err := errors.Join(setContext(f, c), f.checkURL(c)); err != nil {
		return err
	}
	for name := range c.params {
		if _, ok := targetParams[name]; !ok {
			delete(c.params, name)
		}
	}
	c.result = func(f *Filter, result json.RawMessage) json.RawMessage {
		f.rememberLocked(targetIn(result).TargetID)
		return result
	}
	return nil
}

func getTargets(_ *Filter, command *Command) error {
	command.result = func(f *Filter, result json.RawMessage) json.RawMessage {
		var all struct {
			TargetInfos []json.RawMessage `json:"targetInfos"`
		}
		_ = json.Unmarshal(result, &all) // sent by Chromium, so valid
		shown := []json.RawMessage{}
		for _, raw := range all.TargetInfos {
			var t targetInfo
			if json.Unmarshal(raw, &t) == nil && f.admitTargetLocked(t, true) {
				shown = append(shown, raw)
			}
		}
		return encode(map[string]any{"targetInfos": shown})
	}
	return nil
}

// checkURLParam checks the address that a page is to open.
func checkURLParam(f *Filter, c *Command) error {
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

// checkResponse checks a response that replaces a server's: it may not redirect to where
// Page.navigate may not go.
func checkResponse(filter *Filter, command *Command) error {
	if err := command.read(); err != nil {
		return err
	}
	if _, ok := command.params["binaryResponseHeaders"]; ok {
		return errors.New("use responseHeaders in place of binaryResponseHeaders")
	}
	raw, ok := command.params["responseHeaders"]
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
		if _, err := filter.o.CheckURL(to.String()); err != nil {
			return errRedirect
		}
	}
	command.params["responseHeaders"] = encode(headers)
	return nil
}

// checkDrag refuses to drop files, which would be read from this machine.
func checkDrag(_ *Filter, c *Command) error {
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
