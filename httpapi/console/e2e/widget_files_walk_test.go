package e2e

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"testing"
)

// pngFile returns JavaScript that creates a File with a picture.
func pngFile(t *testing.T, name string) string {
	t.Helper()
	var raw bytes.Buffer
	if err := png.Encode(&raw, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	return `new File([Uint8Array.from(atob("` + base64.StdEncoding.EncodeToString(raw.Bytes()) +
		`"), (c) => c.charCodeAt(0))], ` + quoted(name) + `, { type: "image/png" })`
}

// give passes files to the widget by an event: change of its file field, drop or paste.
func (s *shopPage) give(event, files string) {
	s.t.Helper()
	s.frame.eval(`(() => {
		const given = new DataTransfer();
		for (const f of [` + files + `]) given.items.add(f);
		if ("` + event + `" === "change") {
			const field = document.querySelector("input[type=file]");
			field.files = given.files;
			field.dispatchEvent(new Event("change", { bubbles: true }));
		} else document.querySelector(".sw textarea").dispatchEvent("` + event + `" === "drop" ? new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true }) : new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true }));
	})()`)
}

// TestWidgetFilesWalk checks that on a page of another origin a visitor attaches, drops
// and pastes files, removes one and sends the others, and that a person sees them in the
// Inbox and sends one back.
func TestWidgetFilesWalk(t *testing.T) {
	if testing.Short() {
		t.Skip("long, and not about concurrency")
	}
	t.Parallel()
	ts := newTestServer(t)
	site, paste := newShopSite(t)
	id, _ := ts.createWidget(t, `{"allowedOrigins":["`+site.URL+`"],"maxFiles":3,"maxFileSize":1}`)
	paste(`<script src="` + ts.url + `/widget.js" data-widget="default/` + id + `" async></script>`)
	visitor := ts.openShop(t, 375, site.URL)
	chosen := func(names string) {
		t.Helper()
		visitor.frame.waitFor(
			`[...document.querySelectorAll(".sw-chosen li bdi")].map((e) => e.textContent).join() === ` + quoted(names),
		)
	}
	pdf := func(name string) string { return `new File(["%PDF-1.7 "], ` + quoted(name) + `)` }
	visitor.give("change", pdf("bill.pdf"))
	chosen("bill.pdf")
	visitor.give("drop", pngFile(t, "shelf.png")+`, new File(["x"], "run.exe")`)
	chosen("bill.pdf,shelf.png")
	visitor.frame.waitFor(`document.querySelector(".sw-chosen [role=alert]")?.textContent.includes("run.exe")`)
	visitor.give("paste", pdf("wrong.pdf"))
	chosen("bill.pdf,shelf.png,wrong.pdf")
	visitor.give("paste", pdf("fourth.pdf"))
	visitor.frame.waitFor(
		`document.querySelector(".sw-chosen [role=alert]")?.textContent === "Up to 3 files, 1 MB each"`,
	)
	visitor.click("Remove wrong.pdf")
	chosen("bill.pdf,shelf.png")
	visitor.give("drop", `new File([new Uint8Array(1048577)], "large.pdf")`)
	visitor.frame.waitFor(
		`document.querySelector(".sw-chosen [role=alert]")?.textContent === "Up to 3 files, 1 MB each"`,
	)
	chosen("bill.pdf,shelf.png")
	visitor.checkPage("chosen")
	visitor.checkAccessible("chosen")
	visitor.frame.waitFor(`!document.querySelector(".sw-send").disabled`)
	visitor.frame.eval(`void document.querySelector(".sw-composer").requestSubmit()`)
	stored := `[...document.querySelectorAll(".sw-said.visitor .sw-file button:not(:disabled) bdi")].map((e) => ` +
		`e.textContent).join() === "bill.pdf,shelf.png" && document.querySelector(".sw-said.visitor ` +
		`img")?.naturalWidth === 40`
	visitor.frame.waitFor(stored + ` && !document.querySelector(".sw-chosen, .sw-progress, .sw-said [role=alert]")`)
	visitor.checkPage("sent")
	visitor.checkAccessible("sent")
	visitor.reopen()
	visitor.frame.waitFor(stored)

	person := ts.openConsole(t, 1280)
	conversation := at(ts.must(t, 200, "GET", "/api/agents/default/conversations", ""), "conversations.0.id").(string)
	person.open(
		"inbox/"+conversation,
		`[...document.querySelectorAll(".inbox-files button")].length === 2 && document.querySelector(".inbox-files `+
			`img")?.naturalWidth === 40`,
	)
	person.checkPage("the inbox")
	person.eval(`(() => {
		const given = new DataTransfer();
		given.items.add(` + pngFile(t, "offer.png") + `);
		const field = document.querySelector(".inbox-composer input[type=file]");
		field.files = given.files;
		field.dispatchEvent(new Event("change", { bubbles: true }));
	})()`)
	person.waitFor(`document.querySelector(".inbox-attached bdi")?.textContent === "offer.png"`)
	person.checkPage("an answer with a file")
	person.click("Send")
	visitor.frame.waitFor(`document.querySelector(".sw-said.person .sw-file bdi")?.textContent === "offer.png" && ` +
		`document.querySelector(".sw-said.person img")?.naturalWidth === 40`)
	visitor.checkPage("a file of a person")
	visitor.checkAccessible("a file of a person")
	person.waitFor(
		`document.querySelectorAll(".inbox-files button").length === 3 && !document.querySelector(".inbox-attached")`,
	)
}
