package n8n

import (
	"fmt"
	"strings"

	"satchel/agent"
	"satchel/agent/clock"
)

// trigger adds a trigger node and returns its stream.
func (converter *converter) trigger(u *unit, data map[string]any, r ref) *stream {
	converter.addNode(u, u.id, agent.NodeTrigger, data, nil, nil)
	s := &stream{
		from:   []exit{{u.id, "", nil}},
		ref:    r,
		taken:  nodeRan(u.id),
		guards: map[string]string{"": u.id},
		same:   []*unit{u},
	}
	u.outputs[0] = s
	return s
}

// payload is the ref to the whole payload as an item.
var payload = ref{path: "trigger", js: "trigger", object: true}

func convertManual(c *converter, u *unit) {
	c.trigger(u, map[string]any{"event": "manual"}, payload)
}

func convertCalled(c *converter, u *unit) {
	c.trigger(u, map[string]any{"event": "manual"}, payload)
}

func convertError(c *converter, u *unit) {
	u.approximate(
		"EVENT",
		"It starts for failures of every workflow of the agent; the fields of the event differ from n8n's.",
	)
	c.trigger(u, map[string]any{"event": "workflow.errored"}, ref{
		fields: map[string]string{
			"execution.id":            "trigger.execution_id",
			"execution.error.message": "trigger.error.message",
			"workflow.id":             "trigger.workflow_id",
		},
		closed: true,
		js: "({ execution: { id: trigger.execution_id, error: trigger.error }, workflow: " +
			"{ id: trigger.workflow_id } })",
	})
}

// convertWebhook makes a webhook trigger. Callers that needed no credentials in n8n
// cannot call it until its auth is set.
func convertWebhook(converter *converter, unit *unit) {
	data := map[string]any{"event": "webhook"}
	switch auth := unit.p.or("authentication", "none"); auth {
	case "none":
		data["auth"] = map[string]any{"type": "none"}
	default:
		name := converter.credentialOf(unit, auth)
		unit.approximate(
			"HOOK_AUTH",
			fmt.Sprintf(
				"Callers authenticate by %s in n8n%s. Set the trigger's auth before the workflow is activated; "+
					"until then only admins may call it.",
				auth,
				name,
			),
		)
	}
	if mode := unit.p.text("responseMode"); mode == "lastNode" {
		unit.approximate(
			"RESPONSE",
			"n8n answers with the output of the last node; here a webhook-response node has to follow it.",
		)
	}
	if unit.p.flag("multipleMethods") || unit.p.or("httpMethod", "GET") != "POST" {
		unit.approximate(
			"METHOD",
			"Hooks are called by POST here; the webhook of n8n took "+clip(strings.Join(methodsOf(unit), ", "), 60)+".",
		)
	}
	unit.approximate("ADDRESS", "The address changes: hooks have the id of their workflow in it, not the path.")
	if unit.p.flag("options.binaryData") || unit.p.flag("options.rawBody") {
		unit.approximate("BINARY", "The raw body and files of a request are not available.")
	}
	converter.trigger(unit, data, ref{
		path: "trigger",
		js:   "({ headers: trigger.headers, params: {}, query: trigger.query, body: trigger.body })",
	})
}

func methodsOf(u *unit) (all []string) {
	for _, v := range u.p.list("httpMethod") {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		all = []string{u.p.or("httpMethod", "GET")}
	}
	return all
}

// credentialOf returns the name of a unit's credential for the report.
func (converter *converter) credentialOf(u *unit, fallback string) string {
	for _, kind := range sortedKeys(u.credentials) {
		return fmt.Sprintf(" (credential %q)", clip(u.credentials[kind], 60))
	}
	return ""
}

// convertSchedule makes a trigger and a paused schedule for each rule.
func convertSchedule(c *converter, u *unit) {
	rules := u.p.objects("rule.interval")
	if !u.p.has("rule") {
		rules = []params{{}}
	}
	for _, rule := range rules {
		c.schedule(u, cronOf(rule))
	}
	u.scheduled(c)
}

// convertCron converts the older schedule node to a trigger and schedules.
func convertCron(c *converter, u *unit) {
	for _, item := range u.p.objects("triggerTimes.item") {
		c.schedule(u, legacyCron(item))
	}
	u.scheduled(c)
}

// convertInterval converts the oldest schedule node to a trigger and a schedule.
func convertInterval(c *converter, u *unit) {
	n := int(u.p.number("interval", 1))
	switch u.p.or("unit", "seconds") {
	case "minutes":
		c.schedule(u, every(n, 60, "*/%d * * * *"))
	case "hours":
		c.schedule(u, every(n, 24, "0 */%d * * *"))
	default:
		c.schedule(u, "")
	}
	u.scheduled(c)
}

func (u *unit) scheduled(c *converter) {
	c.trigger(u, map[string]any{"event": "schedule"}, ref{
		path:   "",
		closed: true,
		fields: map[string]string{"timestamp": "now"},
		js: `({ timestamp: now, "Readable date": now, Year: now.slice(0, 4), Month: now.slice(5, 7), ` +
			`"Day of month": now.slice(8, 10), Hour: now.slice(11, 13), Minute: now.slice(14, 16) })`,
	})
}

// schedule adds a schedule, or reports why there is none.
func (converter *converter) schedule(unit *unit, cron string) {
	if cron == "" {
		unit.approximate(
			"SCHEDULE",
			"A time cannot be written as a cron expression of five fields (seconds, every so many days or weeks); "+
				"add a schedule for the workflow.",
		)
		return
	}
	name := clip(converter.doc.name, 190)
	if unit.disabled {
		return
	}
	if _, err := clock.ParseCron(cron); err != nil {
		unit.approximate("SCHEDULE", fmt.Sprintf("The cron expression %q cannot be used: %v.", clip(cron, 60), err))
		return
	}
	zone := converter.doc.timezone
	if _, err := clock.Zone(zone); err != nil || zone == "DEFAULT" {
		zone = ""
	}
	converter.out.Schedules = append(converter.out.Schedules, DraftSchedule{
		Name:       name,
		Cron:       cron,
		Timezone:   zone,
		WorkflowID: converter.doc.own,
	})
}

// cronOf returns the cron expression of a rule, or "".
func cronOf(rule params) string {
	minute, hour := int(rule.number("triggerAtMinute", 0)), int(rule.number("triggerAtHour", 0))
	switch rule.or("field", "days") {
	case "minutes":
		return every(int(rule.number("minutesInterval", 5)), 60, "*/%d * * * *")
	case "hours":
		return every(int(rule.number("hoursInterval", 1)), 24, fmt.Sprintf("%d */%%d * * *", minute))
	case "days":
		if rule.number("daysInterval", 1) != 1 {
			return ""
		}
		return fmt.Sprintf("%d %d * * *", minute, hour)
	case "weeks":
		days := []string{}
		for _, v := range rule.list("triggerAtDay") {
			if day, ok := v.(float64); ok {
				days = append(days, fmt.Sprint(int(day)%7))
			}
		}
		if rule.number("weeksInterval", 1) != 1 {
			return ""
		}
		if len(days) == 0 {
			days = []string{"0"}
		}
		return fmt.Sprintf("%d %d * * %s", minute, hour, strings.Join(days, ","))
	case "months":
		return fmt.Sprintf(
			"%d %d %d %s *",
			minute,
			hour,
			int(rule.number("triggerAtDayOfMonth", 1)),
			strings.Replace(fmt.Sprintf("*/%d", int(rule.number("monthsInterval", 1))), "*/1", "*", 1),
		)
	case "cronExpression":
		return dropSeconds(rule.text("expression"))
	}
	return ""
}

// legacyCron is cronOf for the node cron.
func legacyCron(item params) string {
	minute, hour := int(item.number("minute", 0)), int(item.number("hour", 14))
	switch item.or("mode", "everyDay") {
	case "everyMinute":
		return "* * * * *"
	case "everyHour":
		return fmt.Sprintf("%d * * * *", minute)
	case "everyDay":
		return fmt.Sprintf("%d %d * * *", minute, hour)
	case "everyWeek":
		return fmt.Sprintf("%d %d * * %s", minute, hour, item.or("weekday", "1"))
	case "everyMonth":
		return fmt.Sprintf("%d %d %d * *", minute, hour, int(item.number("dayOfMonth", 1)))
	case "everyX":
		if item.or("unit", "hours") == "minutes" {
			return every(int(item.number("value", 2)), 60, "*/%d * * * *")
		}
		return every(int(item.number("value", 2)), 24, "0 */%d * * *")
	case "custom":
		return dropSeconds(item.text("cronExpression"))
	}
	return ""
}

// every returns a cron expression for a step n below of, or of 60 minutes, and ""
// otherwise.
func every(n, of int, format string) string {
	switch {
	case n == of && of == 60:
		return "0 * * * *"
	case n < 1 || n >= of:
		return ""
	}
	return strings.Replace(fmt.Sprintf(format, n), "*/1 ", "* ", 1)
}

// dropSeconds drops the seconds field if it is 0.
func dropSeconds(cron string) string {
	fields := strings.Fields(strings.TrimPrefix(cron, "="))
	if len(fields) == 6 && (fields[0] == "0" || fields[0] == "00") {
		fields = fields[1:]
	}
	if len(fields) != 5 {
		return ""
	}
	return strings.Join(fields, " ")
}

// messageTriggers are the triggers for messages, with n8n's names for the parts of a
// message.
var messageTriggers = map[string]struct {
	platform string
	fields   map[string]string
	js       string
}{
	"chatTrigger": {
		"",
		map[string]string{
			"chatInput": "message.content",
			"sessionId": "conversation.id",
			"action":    "execution.trigger",
		},
		`({ chatInput: message.content, sessionId: conversation.id, action: "sendMessage" })`,
	},
	"manualChatTrigger": {
		"",
		map[string]string{"chatInput": "message.content", "input": "message.content", "sessionId": "conversation.id"},
		`({ chatInput: message.content, input: message.content, sessionId: conversation.id })`,
	},
	"telegramTrigger": {
		"Telegram",
		map[string]string{
			"message.text":            "message.content",
			"message.chat.id":         "conversation.external_thread_id",
			"message.from.id":         "conversation.external_thread_id",
			"message.from.first_name": "contact.name",
			"message.from.username":   "contact.name",
			"message.chat.first_name": "contact.name",
			"message.message_id":      "message.id",
		},
		`({ message: { message_id: message.id, text: message.content, chat: { id: conversation.external_thread_id, ` +
			`first_name: contact.name }, from: { id: conversation.external_thread_id, first_name: contact.name } } })`,
	},
	"slackTrigger": {
		"Slack",
		map[string]string{
			"text":    "message.content",
			"channel": "conversation.external_thread_id",
			"user":    "contact.name",
		},
		`({ text: message.content, channel: conversation.external_thread_id, user: contact.name })`,
	},
	"whatsAppTrigger": {
		"WhatsApp",
		map[string]string{
			"messages.0.text.body":    "message.content",
			"messages.0.from":         "conversation.external_thread_id",
			"contacts.0.profile.name": "contact.name",
			"contacts.0.wa_id":        "conversation.external_thread_id",
		},
		`({ messages: [{ from: conversation.external_thread_id, text: { body: message.content }, type: "text" }], ` +
			`contacts: [{ profile: { name: contact.name } }] })`,
	},
	"emailReadImap": {
		"email",
		map[string]string{
			"textPlain": "message.content",
			"text":      "message.content",
			"from":      "contact.email",
			"subject":   "conversation.title",
		},
		`({ textPlain: message.content, text: message.content, from: contact.email })`,
	},
}

func convertMessageTrigger(converter *converter, unit *unit) {
	t := messageTriggers[shortKind(unit.kind)]
	if t.platform != "" {
		unit.approximate(
			"CHANNEL",
			"It starts for messages of every channel until gateway_id names the "+t.platform+
				" channel. Connect it under Channels; updates other than text messages do not start it.",
		)
	} else {
		unit.approximate("CHANNEL", "It starts for messages of every channel until gateway_id names one.")
	}
	for _, h := range unit.helpers["ai_memory"] {
		h.nodeID = unit.id
		h.approximate("MEMORY", "The conversation is the memory.")
	}
	converter.trigger(unit, map[string]any{"event": "message.received"}, ref{
		fields: t.fields,
		closed: true,
		js:     t.js,
	})
}

// formTypes are the types of fields of a form.
var formTypes = map[string]string{
	"text": "text", "textarea": "long_text", "email": "email", "number": "number", "password": "text", "date": "date",
	"dropdown": "choice", "checkbox": "choices", "radio": "choice", "file": "file",
}

func convertForm(converter *converter, unit *unit) {
	fields, names, parts :=
		[]any{}, map[string]string{"submittedAt": "trigger.submitted_at", "formMode": "execution.trigger"},
		[]string{"submittedAt: trigger.submitted_at"}
	used := map[string]bool{"values": true, "submitted_at": true}
	for index, params := range unit.p.objects("formFields.values") {
		kind, known := formTypes[params.or("fieldType", "text")]
		if !known {
			unit.approximate(
				"FORM_FIELD",
				fmt.Sprintf("A field of type %s is left out.", clip(params.text("fieldType"), 40)),
			)
			continue
		}
		label := clip(params.or("fieldLabel", params.text("fieldName")), 200)
		name := fieldName(label, index, used)
		field := map[string]any{
			"name":     name,
			"label":    label,
			"type":     kind,
			"required": params.flag("requiredField"),
		}
		if options := params.objects("fieldOptions.values"); len(options) > 0 {
			list := []any{}
			for _, o := range options {
				list = append(list, escapeTemplate(clip(o.text("option"), 200)))
			}
			field["options"] = list
			if params.flag("multiselect") {
				field["type"] = "choices"
			}
		}
		field["label"] = escapeTemplate(label)
		fields = append(fields, field)
		for _, key := range []string{label, params.text("fieldName")} {
			if key != "" {
				names[key] = "trigger." + name
				parts = append(parts, "["+quote(key)+"]: trigger."+name)
			}
		}
	}
	data := map[string]any{
		"event":  "form",
		"fields": fields,
		"auth":   map[string]any{"type": "none"},
	}
	for key, path := range map[string]string{
		"title":       "formTitle",
		"description": "formDescription",
		"submit":      "options.buttonLabel",
		"success":     "options.respondWithOptions.values.formSubmittedText",
	} {
		if text := unit.p.text(path); text != "" && !strings.HasPrefix(text, "=") {
			data[key] = escapeTemplate(clip(text, 1000))
		}
	}
	cutText(data, "title", 200)
	cutText(data, "submit", 60)
	unit.approximate("ADDRESS", "The address of the form changes: it has the id of its workflow in it.")
	converter.trigger(unit, data, ref{
		fields: names,
		closed: true,
		js:     "({ " + strings.Join(parts, ", ") + " })",
	})
}

func cutText(data map[string]any, key string, n int) {
	if s, ok := data[key].(string); ok {
		data[key] = clip(s, n)
	}
}

// fieldName returns a name for a form's field, derived from its label.
func fieldName(label string, index int, used map[string]bool) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && isWord(byte(r)) && r != '$' {
			return r
		}
		return '_'
	}, strings.ToLower(label)), "_0123456789")
	if name == "" {
		name = fmt.Sprintf("field_%d", index+1)
	}
	if len(name) > 50 {
		name = name[:50]
	}
	for n := 2; used[name]; n++ {
		name = fmt.Sprintf("%s_%d", name, n)
	}
	used[name] = true
	return name
}
