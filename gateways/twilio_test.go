package gateways

import (
	"encoding/json"
	"net/url"
	"testing"
)

// TestTwilioDescribesMedia: a caption is kept, and media without one is described.
func TestTwilioDescribesMedia(t *testing.T) {
	for form, want := range map[string]string{
		"Body=Look&NumMedia=1&MediaUrl0=https://x.test/1&MediaContentType0=image/jpeg": "Look",
		"Body=&NumMedia=2&MediaContentType0=image/jpeg&MediaContentType1=text/x-vcard": "[image] [contact]",
		"Body=&NumMedia=1&MediaContentType0=application/pdf":                           "[file]",
		"Body=&Latitude=52.5&Longitude=13.4&" +
			"Label=Bakery&Address=Main+St+1": "[location: Bakery, Main St 1: 52.5, 13.4]",
		"Body=&Latitude=52.5&Longitude=13.4": "[location: 52.5, 13.4]",
		"Body=":                              "",
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

// TestTwilioNamesPrograms: what Twilio itself answers, and what programs send, gets no
// automatic answer.
func TestTwilioNamesPrograms(t *testing.T) {
	for form, want := range map[string]string{
		"From=%2B15551230000&Body=Hi":                   "",
		"From=%2B15551230000&Body=STOP&OptOutType=STOP": reasonAutomatic,
		"From=MyBank&Body=Your+code+is+7":               reasonNoReply,
		"From=72727&Body=Your+code+is+7":                reasonRobot,
		"From=4915112345678&Body=Hi":                    "",
	} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		var facts struct {
			AutoSubmitted string `json:"auto_submitted"`
		}
		if err := json.Unmarshal(
			twilioSMS.message("SM1", values).Metadata,
			&facts,
		); err != nil || facts.AutoSubmitted != want {
			t.Errorf("%s: %q, %v, want %q", form, facts.AutoSubmitted, err, want)
		}
	}
}
