package cdp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// newTestFilter returns a Filter whose client has the page session "page" with
// the target "T1".
func newTestFilter(t *testing.T) *Filter {
	t.Helper()
	id := int64(FirstID)
	f := NewFilter(Options{
		Root:    "root",
		Context: "ours",
		NextID: func() int64 {
			id++
			return id
		},
		CheckURL: func(address string) (string, error) {
			if strings.HasPrefix(address, "https://example.com") || address == "about:blank" {
				return address, nil
			}
			return "", errors.New("cannot be opened")
		},
	})
	step := f.FromBrowser(
		[]byte(`{"method":"Target.attachedToTarget","params":{"sessionId":"page","targetInfo":{"targetId":"T1",` +
			`"type":"page","browserContextId":"ours"},"waitingForDebugger":true},"sessionId":"root"}`),
	)
	if len(step.ToClient) != 1 || strings.Contains(string(step.ToClient[0]), "root") {
		t.Fatalf("the client receives %s", step.ToClient)
	}
	return f
}

// admit passes a command to the filter.
func admit(t *testing.T, f *Filter, frame string) Step {
	t.Helper()
	c, step := Parse([]byte(frame))
	if c != nil {
		step = f.Admit(c)
	}
	return step
}

// sent returns a command that was sent to Chromium, without its id.
func sent(t *testing.T, step Step) string {
	t.Helper()
	if len(step.ToBrowser) != 1 || len(step.ToClient) != 0 {
		t.Fatalf("it was not sent: %s", step.ToClient)
	}
	var m message
	if err := json.Unmarshal(step.ToBrowser[0], &m); err != nil || m.ID < FirstID {
		t.Fatalf("%s: %v", step.ToBrowser[0], err)
	}
	m.ID = 0
	return string(encode(m))
}

func TestCommandsThatPass(t *testing.T) {
	f := newTestFilter(t)
	for command, want := range map[string]string{
		`{"id":1,"method":"Browser.getVersion"}`: `{"method":"Browser.getVersion","sessionId":"root"}`,
		`{"id":1,"method":"Runtime.evaluate",` +
			`"params":{"expression":"1"},"sessionId":"page"}`: `{"method":"Runtime.evaluate",` +
			`"params":{"expression":"1"},"sessionId":"page"}`,
		`{"id":1,"method":"Page.navigate",` +
			`"params":{"url":"https://example.com/"},"sessionId":"page"}`: `{"method":"Page.navigate",` +
			`"params":{"url":"https://example.com/"},"sessionId":"page"}`,
		`{"id":1,"method":"Storage.getCookies","params":{}}`: `{"method":"Storage.getCookies",` +
			`"params":{"browserContextId":"ours"},"sessionId":"root"}`,
		`{"id":1,"method":"Target.createTarget","params":{"url":"about:blank","hidden":true}}`: `{"method":"Target.c` +
			`reateTarget","params":{"browserContextId":"ours","url":"about:blank"},"sessionId":"root"}`,
		`{"id":1,"method":"Target.attachToTarget","params":{"targetId":"T1","flatten":true}}`: `{"method":"Target.at` +
			`tachToTarget","params":{"flatten":true,"targetId":"T1"},"sessionId":"root"}`,
		`{"id":1,"method":"Target.setAutoAttach","params":{"autoAttach":true,` +
			`"waitForDebuggerOnStart":true,"flatten":true}}`: `{"method":"Target.setAutoAttach",` +
			`"params":{"autoAttach":true,"flatten":true,"waitForDebuggerOnStart":true},"sessionId":"root"}`,
		`{"id":1,"method":"Target.detachFromTarget",` +
			`"params":{"sessionId":"page","targetId":"T2"}}`: `{"method":"Target.detachFromTarget",` +
			`"params":{"sessionId":"page"},"sessionId":"root"}`,
		`{"id":1,"method":"Fetch.continueRequest",` +
			`"params":{"requestId":"r"},"sessionId":"page"}`: `{"method":"Fetch.continueRequest",` +
			`"params":{"requestId":"r"},"sessionId":"page"}`,
		`{"id":1,"method":"Input.dispatchDragEvent","params":{"type":"drop",` +
			`"data":{"items":[]}},"sessionId":"page"}`: `{"method":"Input.dispatchDragEvent",` +
			`"params":{"data":{"items":[]},"type":"drop"},"sessionId":"page"}`,
		`{"id":1,"method":"Fetch.fulfillRequest","params":{"responseCode":302,"responseHeaders":[{"name":"Location",` +
			`"value":"/next"}]},"sessionId":"page"}`: `{"method":"Fetch.fulfillRequest",` +
			`"params":{"responseCode":302,"responseHeaders":[{"name":"Location","value":"/next"}]},"sessionId":"page"}`,
		// A command that two parsers may read differently is encoded again.
		`{"id":1,"method":"Browser.crash","method":"Browser.getVersion",` +
			`"Method":"Browser.crash","x":1}`: `{"method":"Browser.getVersion","sessionId":"root"}`,
		`{"id":1,"method":"Page.navigate","params":{"url":"file:///etc/passwd",` +
			`"url":"about:blank"},"sessionId":"page"}`: `{"method":"Page.navigate",` +
			`"params":{"url":"about:blank"},"sessionId":"page"}`,
	} {
		if got := sent(t, admit(t, f, command)); got != want {
			t.Errorf("%s\n was sent as %s\n want        %s", command, got, want)
		}
	}
}

func TestCommandsThatAreRefused(t *testing.T) {
	f := newTestFilter(t)
	commands := []string{
		`{"id":7,"method":"Page.enable","sessionId":"other"}`,
		`{"id":7,"method":"Page.enable","sessionId":"root"}`,
		`{"id":7,"method":"Page.navigate","params":{"url":"file:///etc/passwd"},"sessionId":"page"}`,
		`{"id":7,"method":"Page.navigate","params":{"url":{"a":1}},"sessionId":"page"}`,
		`{"id":7,"method":"Page.navigate","params":{"url":"about:blank",` +
			`"url":"file:///etc/passwd"},"sessionId":"page"}`,
		`{"id":7,"method":"Target.createTarget","params":{"url":"chrome://version"}}`,
		`{"id":7,"method":"Target.createTarget","params":{"url":"about:blank","browserContextId":"other"}}`,
		`{"id":7,"method":"Storage.getCookies","params":{"browserContextId":"other"}}`,
		`{"id":7,"method":"Storage.getCookies","params":{"browserContextId":null}}`,
		`{"id":7,"method":"Target.attachToTarget","params":{"targetId":"T2","flatten":true}}`,
		`{"id":7,"method":"Target.attachToTarget","params":{"targetId":"T1"}}`,
		`{"id":7,"method":"Target.closeTarget","params":{}}`,
		`{"id":7,"method":"Target.closeTarget"}`,
		`{"id":7,"method":"Target.getTargetInfo","params":{"targetId":"T2"}}`,
		`{"id":7,"method":"Target.setAutoAttach","params":{"autoAttach":true,"waitForDebuggerOnStart":true}}`,
		`{"id":7,"method":"Target.detachFromTarget","params":{"targetId":"T1"}}`,
		`{"id":7,"method":"Fetch.continueRequest","params":{"requestId":"r",` +
			`"url":"file:///etc/passwd"},"sessionId":"page"}`,
		`{"id":7,"method":"Fetch.fulfillRequest","params":{"responseHeaders":[{"name":" location","value":" ` +
			`file:///etc/passwd"}]},"sessionId":"page"}`,
		`{"id":7,"method":"Fetch.continueResponse","params":{"binaryResponseHeaders":"TG9j"},"sessionId":"page"}`,
		`{"id":7,"method":"Input.dispatchDragEvent","params":{"data":{"items":[],` +
			`"files":["/etc/passwd"]}},"sessionId":"page"}`,
		`{"id":7,"method":"Page.enable","params":[1],"sessionId":"page"}`,
		`{"id":7,"method":5}`,
		`{"id":7,"method":"Page.enable","sessionId":null}`,
	}
	for _, method := range strings.Fields(`Target.createBrowserContext Target.disposeBrowserContext Target.attachToBrowserTarget Target.exposeDevToolsProtocol
		Target.sendMessageToTarget Target.setRemoteLocations Target.autoAttachRelated Browser.getBrowserCommandLine Browser.crash Browser.executeBrowserCommand
		Storage.clearDataForOrigin Storage.getUsageAndQuota SystemInfo.getInfo Tracing.start Tethering.bind Extensions.loadUnpacked PWA.install FileSystem.getDirectory
		Memory.getDOMCounters Schema.getDomains Unknown.method nonsense . DOM.setFileInputFiles DOM.getFileInfo Page.setDownloadBehavior
		Network.loadNetworkResource Network.setRequestInterception Network.continueInterceptedRequest`) {
		commands = append(
			commands,
			fmt.Sprintf(`{"id":7,"method":%q}`, method),
			fmt.Sprintf(`{"id":7,"method":%q,"sessionId":"page"}`, method),
		)
	}
	for _, method := range strings.Fields(
		"Fetch.enable Network.getAllCookies Page.navigate Runtime.evaluate IO.read Security.setIgnoreCertificateErrors",
	) {
		// without a session
		commands = append(commands, fmt.Sprintf(`{"id":7,"method":%q,"params":{"url":"about:blank"}}`, method))
	}
	for _, command := range commands {
		step := admit(t, f, command)
		if len(step.ToBrowser) != 0 ||
			len(step.ToClient) != 1 ||
			!strings.Contains(string(step.ToClient[0]), `"error":{"code":-32`) ||
			!strings.HasPrefix(string(step.ToClient[0]), `{"id":7,`) {
			t.Errorf("%s\n was sent as %s, answered with %s", command, step.ToBrowser, step.ToClient)
		}
	}
	for _, frame := range []string{
		``,
		`[]`,
		`null`,
		`{"method":"Page.enable"}`,
		`{"id":"1","method":"Page.enable"}`,
		`{"id":null,"method":"x"}`,
		`{"id":4294967296,"method":"x"}`,
		"{\"id\":1,\"method\":\"a\x00b\"}",
	} {
		if step := admit(t, f, frame); len(step.ToBrowser) != 0 || len(step.ToClient) != 1 {
			t.Errorf("%q: %+v", frame, step)
		}
	}
}

func TestAnsweredCommands(t *testing.T) {
	f := newTestFilter(t)
	for command, want := range map[string]string{
		`{"id":3,"method":"Browser.setDownloadBehavior",` +
			`"params":{"behavior":"allow","downloadPath":"/etc"}}`: `{"id":3,"result":{}}`,
		`{"id":3,"method":"Target.getBrowserContexts"}`: `{"id":3,"result":{"browserContextIds":[]}}`,
		`{"id":3,"method":"Browser.close"}`:             `{"id":3,"result":{}}`,
	} {
		step := admit(t, f, command)
		if len(step.ToBrowser) != 0 ||
			len(step.ToClient) != 1 ||
			string(step.ToClient[0]) != want ||
			step.End != strings.Contains(command, "close") {
			t.Errorf("%s: %s, end %v", command, step.ToClient, step.End)
		}
	}
	for command, answer := range map[string][2]string{
		`{"id":4,"method":"Page.enable","sessionId":"page"}`: {
			`"result":{}`,
			`{"id":4,"result":{},"sessionId":"page"}`,
		},
		`{"id":4,"method":"Target.getTargets"}`: {
			`"result":{"targetInfos":[{"targetId":"T1","type":"page","browserContextId":"ours"},{"targetId":"T2",` +
				`"type":"page","browserContextId":"other"},{"targetId":"T3","type":"browser"},{"targetId":"T4",` +
				`"type":"browser","browserContextId":"ours"}]}`,
			`{"id":4,"result":{"targetInfos":[{"targetId":"T1","type":"page","browserContextId":"ours"}]}}`,
		},
		`{"id":4,"method":"Target.createTarget","params":{"url":"about:blank"}}`: {
			`"result":{"targetId":"T9"}`,
			`{"id":4,"result":{"targetId":"T9"}}`,
		},
	} {
		var m message
		_ = json.Unmarshal(admit(t, f, command).ToBrowser[0], &m)
		step := f.FromBrowser(fmt.Appendf(nil, `{"id":%d,%s,"sessionId":"root"}`, m.ID, answer[0]))
		if len(step.ToClient) != 1 || string(step.ToClient[0]) != answer[1] {
			t.Errorf("%s: %s", command, step.ToClient)
		}
		if step := f.FromBrowser(fmt.Appendf(nil, `{"id":%d,%s}`, m.ID, answer[0])); len(step.ToClient) != 0 {
			t.Errorf("%s is answered twice", command)
		}
	}
	sent(t, admit(t, f, `{"id":5,"method":"Target.closeTarget","params":{"targetId":"T9"}}`))
}

func TestEventsForTheClient(t *testing.T) {
	f := newTestFilter(t)
	for _, e := range []struct{ event, want string }{
		{
			`{"method":"Page.loadEventFired","params":{"timestamp":1},"sessionId":"page"}`,
			`{"method":"Page.loadEventFired","params":{"timestamp":1},"sessionId":"page"}`,
		},
		{`{"method":"Page.loadEventFired","params":{},"sessionId":"other"}`, ``},
		{`{"method":"Network.requestWillBeSent","params":{},"sessionId":"root"}`, ``},
		{`{"method":"Page.loadEventFired","params":{}}`, ``},
		{
			`{"method":"Browser.downloadProgress","params":{"filePath":"/home/x","guid":"g"},"sessionId":"root"}`,
			`{"method":"Browser.downloadProgress","params":{"guid":"g"}}`,
		},
		{
			`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"T5","type":"page",` +
				`"browserContextId":"other"}},"sessionId":"root"}`,
			``,
		},
		{`{"method":"Target.targetDestroyed","params":{"targetId":"T5"},"sessionId":"root"}`, ``},
		{
			`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"T6","type":"page",` +
				`"browserContextId":"ours"}},"sessionId":"root"}`,
			`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"T6","type":"page",` +
				`"browserContextId":"ours"}}}`,
		},
		{
			`{"method":"Target.targetDestroyed","params":{"targetId":"T6"},"sessionId":"root"}`,
			`{"method":"Target.targetDestroyed","params":{"targetId":"T6"}}`,
		},
		{`{"method":"Target.receivedMessageFromTarget","params":{"message":"x"},"sessionId":"page"}`, ``},
		{
			`{"method":"Target.attachedToTarget","params":{"sessionId":"frame","targetInfo":{"targetId":"T7",` +
				`"type":"iframe","browserContextId":"ours"}},"sessionId":"page"}`,
			`{"method":"Target.attachedToTarget","params":{"sessionId":"frame","targetInfo":{"targetId":"T7",` +
				`"type":"iframe","browserContextId":"ours"}},"sessionId":"page"}`,
		},
		{`{"method":"Runtime.x","sessionId":"frame"}`, `{"method":"Runtime.x","sessionId":"frame"}`},
		{
			`{"method":"Target.detachedFromTarget","params":{"sessionId":"frame"},"sessionId":"page"}`,
			`{"method":"Target.detachedFromTarget","params":{"sessionId":"frame"},"sessionId":"page"}`,
		},
		{`{"method":"Runtime.x","sessionId":"frame"}`, ``},
	} {
		got := ""
		if step := f.FromBrowser([]byte(e.event)); len(step.ToClient) == 1 {
			got = string(step.ToClient[0])
		}
		if got != e.want {
			t.Errorf("%s\n reaches the client as %s\n want                  %s", e.event, got, e.want)
		}
	}
	// A target of another context is resumed and detached.
	step := f.FromBrowser(
		[]byte(`{"method":"Target.attachedToTarget","params":{"sessionId":"hidden","targetInfo":{"targetId":"T8",` +
			`"type":"page","browserContextId":"other"},"waitingForDebugger":true},"sessionId":"root"}`),
	)
	if len(step.ToClient) != 0 ||
		len(step.ToBrowser) != 2 ||
		!strings.Contains(string(step.ToBrowser[0]), `"Runtime.runIfWaitingForDebugger","sessionId":"hidden"`) ||
		!strings.Contains(
			string(step.ToBrowser[1]),
			`"Target.detachFromTarget","params":{"sessionId":"hidden"},"sessionId":"root"`,
		) {
		t.Errorf("a hidden target: %s", step.ToBrowser)
	}
}

func TestFilterIsBounded(t *testing.T) {
	f := newTestFilter(t)
	for range maxPending {
		sent(t, admit(t, f, `{"id":1,"method":"Page.enable","sessionId":"page"}`))
	}
	if step := admit(
		t,
		f,
		`{"id":1,"method":"Page.enable","sessionId":"page"}`,
	); len(step.ToBrowser) != 0 || len(step.ToClient) != 1 {
		t.Errorf("one more command is sent: %s", step.ToBrowser)
	}
	for i := range maxTargets + 10 {
		f.FromBrowser(fmt.Appendf(
			nil,
			`{"method":"Target.targetCreated","params":{"targetInfo":{"targetId":"W%d","type":"worker",`+
				`"browserContextId":"ours"}},"sessionId":"root"}`,
			i,
		))
	}
	if _, known := f.targets["T1"]; len(f.targets) > maxTargets || !known {
		t.Errorf("%d targets are kept; the one of a session is kept: %v", len(f.targets), known)
	}
}
