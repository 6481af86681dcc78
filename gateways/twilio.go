package gateways

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/agent"
	"satchel/store"
)

// twilio implements gateways of the types sms and chatbot_b,
// https://www.twilio.com/docs/messaging/api.
type twilio struct {
	prefix string // of numbers: "" for SMS, "whatsapp:" for WhatsApp
}

var (
	twilioSMS      = twilio{}
	twilioWhatsApp = twilio{"whatsapp:"}
)

const twilioBase = agent.TwilioAPI

// twilioLimit is the maximum number of characters in a message.
const twilioLimit = 1600

// TwilioInfo describes a verified account.
type TwilioInfo struct {
	AccountSID   string `json:"accountSid"`
	FriendlyName string `json:"friendlyName"`
	Status       string `json:"status"`
	Type         string `json:"type"`
}

func (twilio) missing(c agent.GatewayConfig) []string {
	return emptyFields("accountSid", c.AccountSID, "authToken", c.AuthToken, "phoneNumber", c.PhoneNumber)
}

// call makes a call for the account. A nil form means GET.
func (twilio) call(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	path string,
	repeats bool,
	form url.Values,
	out any,
) error {
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(config.AccountSID, config.AuthToken)
	call := apiCall{
		platform: "Twilio",
		method:   http.MethodGet,
		url: baseURL(config.APIBaseURL, twilioBase) + "/2010-04-01/Accounts/" +
			url.PathEscape(config.AccountSID) + path,
		idempotent: repeats,
		header:     req.Header,
	}
	if form != nil {
		call.method, call.body = http.MethodPost, []byte(form.Encode())
		call.header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return twilioRefusal(gateways.call(ctx, call, out))
}

// twilioRefusal returns an error for clients, with the number under which
// https://www.twilio.com/docs/api/errors explains it.
func twilioRefusal(err error) error {
	status := statusOf(err)
	if status == nil || status.status == http.StatusUnauthorized || status.status == http.StatusTooManyRequests {
		return refusal(err, "Twilio", "account SID or auth token")
	}
	var answer struct {
		Code int `json:"code"`
	}
	if json.Unmarshal(status.body, &answer) != nil || answer.Code == 0 || status.status >= 500 {
		return refusal(err, "Twilio", "account")
	}
	return newClientError(
		"Twilio refused the call with error "+strconv.Itoa(answer.Code)+", see https://www.twilio.com/docs/api/errors/"+
			strconv.Itoa(answer.Code),
		err,
	)
}

func (t twilio) verify(ctx context.Context, gateways *Gateways, config agent.GatewayConfig) (any, error) {
	var account struct {
		SID          string `json:"sid"`
		FriendlyName string `json:"friendly_name"`
		Status       string `json:"status"`
		Type         string `json:"type"`
	}
	if err := t.call(ctx, gateways, config, ".json", true, nil, &account); err != nil {
		return nil, err
	}
	switch {
	case account.SID == "":
		return nil, newClientError("Twilio sent a response that could not be read", nil)
	case account.Status != "active":
		return nil, newClientError("the Twilio account is not active"+parenthesized(errorCode(account.Status)), nil)
	}
	return TwilioInfo{
		AccountSID:   account.SID,
		FriendlyName: account.FriendlyName,
		Status:       account.Status,
		Type:         account.Type,
	}, nil
}

// parenthesized returns a text in parentheses after a space, or "" if it is empty.
func parenthesized(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// number normalizes a phone number to Twilio's format.
func (t twilio) number(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), t.prefix)
	return t.prefix + strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -()./\u00a0", r) {
			return -1
		}
		return r
	}, text)
}

// isService reports whether a phoneNumber is a messaging service, which selects
// the number itself.
func isService(phoneNumber string) bool { return strings.HasPrefix(phoneNumber, "MG") }

// recipient returns the thread of a conversation, which is the contact's
// number.
func (twilio) recipient(thread string) (to, within string) { return thread, "" }

func (t twilio) send(
	ctx context.Context,
	gateways *Gateways,
	config agent.GatewayConfig,
	message Message,
) (Sent, error) {
	to, format := t.number(message.To), formatSlack
	if t.prefix == "" {
		format = nil
	}
	parts, _ := format.parts(message.Text, twilioLimit)
	return sendParts(message, parts, func(text, _ string) (Sent, error) {
		form := url.Values{"To": {to}, "Body": {text}}
		if isService(config.PhoneNumber) {
			form.Set("MessagingServiceSid", config.PhoneNumber)
		} else {
			form.Set("From", t.number(config.PhoneNumber))
		}
		var made struct {
			SID string `json:"sid"`
			To  string `json:"to"`
		}
		if err := t.call(ctx, gateways, config, "/Messages.json", false, form, &made); err != nil {
			return Sent{}, err
		}
		if made.SID == "" {
			return Sent{}, newClientError("Twilio sent a response that could not be read", nil)
		}
		return Sent{ID: made.SID, Channel: strings.TrimPrefix(cmp.Or(made.To, to), t.prefix)}, nil
	})
}

// noReply is empty TwiML: the answer is sent by a call.
var noReply = Response{ContentType: "text/xml; charset=utf-8", Body: []byte("<Response/>")}

// maxMedia is the maximum number of files that Twilio sends with a message.
const maxMedia = 10

func (t twilio) parsePost(gateway store.OpenGateway, post Post, _ time.Time) (Parsed, error) {
	form, ok := twilioForm(gateway.Config.AuthToken, post)
	if !ok {
		return Parsed{}, badSignature()
	}
	id := cmp.Or(form.Get("MessageSid"), form.Get("SmsSid"))
	from := form.Get("From")
	status := cmp.Or(form.Get("MessageStatus"), form.Get("SmsStatus"))
	in := t.message(id, form)
	arrived := (status == "received" || status == "receiving" || status == "" && form.Has("Body")) &&
		(in.Text != "" || len(in.Attachments) > 0)
	if id == "" ||
		!arrived ||
		!strings.HasPrefix(from, t.prefix) ||
		t.prefix == "" && strings.Contains(from, ":") {
		taken := Parsed{Response: noReply, EventID: bodyHash(post.Body)}
		if id != "" {
			taken.EventID = id + ":" + status
		}
		return taken, nil
	}
	return Parsed{
		Response: noReply,
		EventID:  id,
		Messages: []agent.Inbound{in},
	}, nil
}

func (t twilio) message(id string, form url.Values) agent.Inbound {
	number := strings.TrimPrefix(form.Get("From"), t.prefix)
	media, _ := strconv.Atoi(form.Get("NumMedia"))
	var files []agent.Attachment
	for i := range min(media, maxMedia) {
		n := strconv.Itoa(i)
		files = append(files, agent.Attachment{
			URL:      form.Get("MediaUrl" + n),
			MimeType: form.Get("MediaContentType" + n),
		})
	}
	in := agent.Inbound{
		ID:     id,
		Thread: number,
		Text:   twilioText(form, files),
		From:   agent.ContactChange{Phone: agent.Some(number)},
		Metadata: metadata(map[string]string{
			"platform":       "twilio",
			"from":           number,
			"to":             strings.TrimPrefix(form.Get("To"), t.prefix),
			"city":           form.Get("FromCity"),
			"country":        form.Get("FromCountry"),
			"button":         cmp.Or(form.Get("ButtonPayload"), form.Get("ListId")),
			"reply_to":       form.Get("OriginalRepliedMessageSid"),
			"auto_submitted": t.automatic(number, form),
		}),
		Attachments: files,
	}
	if t.prefix != "" {
		in.From.WhatsApp = agent.Some(number)
	}
	if name := form.Get("ProfileName"); name != "" {
		in.From.Name = agent.Some(name)
	}
	return in
}

// maxShortCode is the length of the longest short codes.
const maxShortCode = 8

// automatic returns why a message gets no automatic answer, or "": Twilio itself answers
// STOP and HELP; senders with a name cannot be replied to; short codes belong to programs.
func (t twilio) automatic(number string, form url.Values) string {
	digits := strings.TrimPrefix(number, "+")
	switch {
	case form.Get("OptOutType") != "":
		return reasonAutomatic
	case t.prefix != "":
		return ""
	case strings.Trim(digits, "0123456789") != "":
		return reasonNoReply
	case digits == number && len(digits) <= maxShortCode:
		return reasonRobot
	}
	return ""
}

// twilioText returns the text of a message: in WhatsApp also that of the button or the
// list item that was chosen, or the data of a form. A message without text is described
// in brackets: its files by type, and a location from WhatsApp.
func twilioText(form url.Values, files []agent.Attachment) string {
	for _, name := range []string{
		"Body", "ButtonText", "ListTitle", "ButtonPayload", "ListId", "InteractiveData", "FlowData",
	} {
		if text := form.Get(name); strings.TrimSpace(text) != "" {
			return text
		}
	}
	if at := strings.Join(nonEmpty(form.Get("Latitude"), form.Get("Longitude")), ", "); at != "" {
		place := strings.Join(nonEmpty(form.Get("Label"), form.Get("Address")), ", ")
		return agent.Clip("[location: "+strings.Join(nonEmpty(place, at), ": "), 1000) + "]"
	}
	kinds := make([]string, len(files))
	for i, f := range files {
		kind, rest, _ := strings.Cut(f.MimeType, "/")
		switch {
		case kind == "image", kind == "audio", kind == "video":
		case strings.HasSuffix(rest, "vcard"):
			kind = "contact"
		default:
			kind = "file"
		}
		kinds[i] = "[" + kind + "]"
	}
	return strings.Join(kinds, " ")
}

// twilioForm verifies the signature of a form and parses it, or verifies the signature
// of a JSON body, whose hash is part of the signed URL.
func twilioForm(token string, p Post) (url.Values, bool) {
	form, data := url.Values{}, ""
	if u, err := url.Parse(p.URL); err == nil && u.Query().Has("bodySHA256") {
		if !strings.EqualFold(u.Query().Get("bodySHA256"), bodyHash(p.Body)) {
			return nil, false
		}
	} else {
		var err error
		if form, err = url.ParseQuery(string(p.Body)); err != nil {
			return nil, false
		}
		data = twilioData(form)
	}
	return form, twilioSigned(token, p, data)
}

// twilioData returns the signed data of a form.
func twilioData(form url.Values) string {
	var data strings.Builder
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			data.WriteString(name + value)
		}
	}
	return data.String()
}

// register sets the webhook of the number at Twilio. For WhatsApp it must be
// set manually.
func (t twilio) register(
	ctx context.Context,
	gateways *Gateways,
	gateway store.OpenGateway,
	webhookURL string,
) (string, error) {
	switch {
	case t.prefix != "":
		return "Open https://console.twilio.com, choose Messaging, then Senders, then WhatsApp senders (or the " +
			"sandbox settings under Try it out), and set \"When a message comes in\" to " + webhookURL +
			" with HTTP POST.", nil
	case isService(gateway.Config.PhoneNumber):
		return "Open https://console.twilio.com, choose Messaging, then Services, then the service, " +
			"then Integration, choose \"Send a webhook\" and set the Request URL to " + webhookURL +
			" with HTTP POST.", nil
	}
	if err := gateways.reachable(gateway); err != nil {
		return "", err
	}
	var found struct {
		Numbers []struct {
			SID string `json:"sid"`
		} `json:"incoming_phone_numbers"`
	}
	query := url.Values{"PhoneNumber": {t.number(gateway.Config.PhoneNumber)}}
	if err := t.call(
		ctx,
		gateways,
		gateway.Config,
		"/IncomingPhoneNumbers.json?"+query.Encode(),
		true,
		nil,
		&found,
	); err != nil {
		return "", err
	}
	if len(found.Numbers) == 0 || found.Numbers[0].SID == "" {
		return "", newClientError("the Twilio account has no number like config.phoneNumber", nil)
	}
	form := url.Values{"SmsUrl": {webhookURL}, "SmsMethod": {http.MethodPost}}
	return "", t.call(
		ctx,
		gateways,
		gateway.Config,
		"/IncomingPhoneNumbers/"+url.PathEscape(found.Numbers[0].SID)+".json",
		true,
		form,
		nil,
	)
}
