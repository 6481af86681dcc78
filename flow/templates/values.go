package templates

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"satchel/agent"
	"satchel/agent/clock"
)

// Types of values other than text.
const (
	typeGateway = "gateway"
	typeSource  = "source"
	typeNumber  = "number"
)

// gatewayFields are the inputs for a new gateway by platform.
var gatewayFields = map[string][]Field{
	"telegram": {{
		Name:        "botToken",
		Title:       "Bot token",
		Type:        "secret",
		Description: "BotFather on Telegram gives it: /newbot.",
	}},
	"slack": {
		{
			Name:        "botToken",
			Title:       "Bot token",
			Type:        "secret",
			Description: "Begins with xoxb-; under OAuth & Permissions of your Slack app, with the scope chat:write.",
		},
		{Name: "signingSecret", Title: "Signing secret", Type: "secret", Description: "Under Basic Information."},
	},
	"discord": {
		{Name: "botToken", Title: "Bot token", Type: "secret"},
		{Name: "applicationId", Title: "Application ID", Type: "text"},
		{
			Name:        "publicKey",
			Title:       "Public key",
			Type:        "text",
			Description: "Under General Information of your Discord application.",
		},
	},
	"whatsapp": twilio,
	"sms":      twilio,
	"email": {
		{
			Name:    "provider",
			Title:   "Provider",
			Type:    "choice",
			Options: []string{"resend", "smtp"},
			Default: "resend",
		},
		{Name: "fromAddress", Title: "From", Type: "email"},
		{Name: "apiKey", Title: "API key of Resend", Type: "secret", Optional: true},
		{
			Name:        "webhookSecret",
			Title:       "Signing secret of Resend's webhook",
			Type:        "secret",
			Description: "Only to receive email.",
			Optional:    true,
		},
		{Name: "smtpHost", Title: "SMTP server", Type: "text", Optional: true},
		{Name: "smtpPort", Title: "SMTP port", Type: "number", Optional: true},
		{Name: "smtpUsername", Title: "SMTP user name", Type: "text", Optional: true},
		{Name: "smtpPassword", Title: "SMTP password", Type: "secret", Optional: true},
		{
			Name:     "smtpTls",
			Title:    "SMTP encryption",
			Type:     "choice",
			Options:  []string{"starttls", "tls", "none"},
			Optional: true,
		},
	},
}

var twilio = []Field{
	{
		Name:        "accountSid",
		Title:       "Account SID",
		Type:        "text",
		Description: "On the first page of Twilio's console, as is the token.",
	},
	{Name: "authToken", Title: "Auth token", Type: "secret"},
	{Name: "phoneNumber", Title: "Your Twilio number", Type: "phone"},
}

// checkValues returns the values with their defaults, or an error that names the
// invalid ones.
func (t *Template) checkValues(given map[string]any) (map[string]any, error) {
	var is agent.Issues
	values := map[string]any{}
	for _, v := range t.Values {
		value := v.check(&is, given, "values.")
		if config, ok := value.(map[string]any); ok {
			value = v.checkConfig(&is, config)
		}
		if value != nil {
			values[v.Name] = value
		}
	}
	return values, is.Err()
}

// check returns the value of a field, or its default; prefix is its path in
// the request.
func (f *Field) check(is *agent.Issues, given map[string]any, prefix string) any {
	value := given[f.Name]
	if value == nil || value == "" {
		value = f.Default
	}
	if value == nil {
		is.Check(f.Optional, prefix+f.Name, "is required")
	} else {
		is.Check(f.hasType(value), prefix+f.Name, f.validValues())
	}
	return value
}

// checkConfig checks the config of a new gateway. Fields without an input in
// the template, such as apiBaseUrl, are accepted unchanged.
func (v *Value) checkConfig(is *agent.Issues, config map[string]any) map[string]any {
	checked := map[string]any{}
	for name, value := range config {
		if value != "" {
			checked[name] = value
		}
	}
	for _, f := range v.Fields {
		if value := f.check(is, config, "values."+v.Name+"."); value != nil {
			checked[f.Name] = value
		}
	}
	return checked
}

// hasType reports whether a value has the field's type.
func (f *Field) hasType(value any) bool {
	if f.Type == typeNumber {
		n, ok := value.(float64)
		return ok &&
			(f.Minimum == nil || n >= *f.Minimum) &&
			(f.Maximum == nil || n <= *f.Maximum)
	}
	if _, ok := value.(map[string]any); ok {
		return f.Type == typeGateway
	}
	text, ok := value.(string)
	if !ok || len(text) > 4000 || strings.TrimSpace(text) == "" {
		return false
	}
	switch f.Type {
	case "choice":
		return slices.Contains(f.Options, text)
	case "url":
		address, err := url.Parse(text)
		return err == nil &&
			(address.Scheme == "https" || address.Scheme == "http") &&
			address.Host != "" &&
			!strings.ContainsAny(text, "{}")
	case "email":
		return strings.Contains(text, "@")
	case "cron":
		_, err := clock.ParseCron(text)
		return err == nil
	}
	return true
}

// validValues describes valid values for an error.
func (f *Field) validValues() string {
	rules := map[string]string{
		"choice":    "must be one of " + strings.Join(f.Options, ", "),
		"url":       "must be an http or https address",
		"email":     "must be an email address",
		"cron":      "must have five fields: minute, hour, day of the month, month, day of the week",
		typeNumber:  "must be a number within its bounds",
		typeGateway: "must be the id of a gateway, or the config of a new one",
	}
	if rule := rules[f.Type]; rule != "" {
		return rule
	}
	return "must be a text"
}

// fill replaces [[name]] with values; within longer texts as text.
func fill(in any, values map[string]any) any {
	return agent.MapStrings(in, func(text string) any {
		return fillText(text, values)
	})
}

// placeholder matches a value's name and the slash after it, which is not
// doubled.
var placeholder = regexp.MustCompile(`\[\[(\w+)\]\](/?)`)

func fillText(text string, values map[string]any) any {
	if m := placeholder.FindStringSubmatch(text); m != nil && m[0] == text && m[2] == "" {
		if value, ok := values[m[1]]; ok {
			return value
		}
	}
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		m := placeholder.FindStringSubmatch(found)
		value, ok := values[m[1]].(string)
		if !ok {
			return found
		}
		if m[2] != "" {
			value = strings.TrimSuffix(value, "/")
		}
		return value + m[2]
	})
}

// fillNodes returns nodes with their values filled in.
func fillNodes(nodes []agent.RawNode, values map[string]any) ([]agent.RawNode, error) {
	out := make([]agent.RawNode, len(nodes))
	for i, raw := range nodes {
		var n any
		if err := json.Unmarshal(raw, &n); err != nil {
			return nil, err
		}
		out[i] = encode[agent.RawNode](fill(n, values))
	}
	return out, nil
}
