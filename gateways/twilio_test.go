package gateways

import (
	"net/url"
	"testing"
)

// TestTwilioDescribesMedia: a caption is kept, and media without one is described.
func TestTwilioDescribesMedia(t *testing.T) {
	for form, want := range map[string]string{
		"Body=Look&NumMedia=1&MediaUrl0=https://x.test/1&MediaContentType0=image/jpeg": "Look",
		"Body=&NumMedia=2&MediaContentType0=image/jpeg&MediaContentType1=text/x-vcard": "[image] [contact]",
		"Body=&NumMedia=1&MediaContentType0=application/pdf":                           "[file]",
		"Body=&Latitude=52.5&Longitude=13.4&Label=Bakery&Address=Main+St+1":            "[location: Bakery, Main St 1: 52.5, 13.4]",
		"Body=&Latitude=52.5&Longitude=13.4":                                           "[location: 52.5, 13.4]",
		"Body=":                                                                        "",
	} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		if got := twilioWhatsApp.message("SM1", values).Text; got != want {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
}
