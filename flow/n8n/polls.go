package n8n

import (
	"fmt"
	"strings"
)

// poll is the request of an n8n trigger that polls a service.
type poll struct {
	service, operation string
	key                string // path to what identifies an entry; empty: a changed entry counts again
}

// polls are the triggers with a single request. Those with several events are in
// pollOf.
var polls = map[string]poll{
	"gmailTrigger":            {"gmail", "trigger.", "id"},
	"googleSheetsTrigger":     {"googleSheets", "sheet.read", ""},
	"googleDriveTrigger":      {"googleDrive", "trigger.", ""},
	"airtableTrigger":         {"airtable", "trigger.", ""},
	"notionTrigger":           {"notion", "trigger.", ""},
	"googleCalendarTrigger":   {"googleCalendar", "trigger.", ""},
	"microsoftOutlookTrigger": {"microsoftOutlook", "trigger.", "id"},
	"rssFeedReadTrigger":      {},
}

// pollOf returns the poll of a trigger. A created entry counts once, a changed one
// again with each change.
func pollOf(u *unit) poll {
	p := polls[shortKind(u.kind)]
	switch u.p.text("event") {
	case "fileCreated", "folderCreated", "watchFolderCreated", "pageAddedToDatabase", "eventCreated":
		p.key = "id"
	case "rowAdded":
		p.key = "row_number"
	}
	return p
}

// convertPoll makes a trigger with a paused schedule, the request, and a node that
// passes only new items.
func convertPoll(converter *converter, u *unit) {
	times := u.p.objects("pollTimes.item")
	if len(times) == 0 {
		times = []params{{"mode": "everyMinute"}}
	}
	for _, t := range times {
		converter.schedule(u, legacyCron(t))
	}
	u.scheduled(converter)
	u.approximate(
		"NEW_ITEMS",
		"The first run only notes what is there. n8n asks the service for what is newer than its last request; "+
			"here what an earlier run has seen is left out. One page is read in each run, so a schedule that is "+
			"too rare can miss entries.",
	)
	poll := pollOf(u)
	environment := &env{
		c:  converter,
		u:  u,
		in: u.outputs[0],
	}
	request, list, fresh, gate :=
		converter.newID(u.id+"_request"), converter.newID(u.id+"_entries"), converter.newID(u.id+"_new"),
		converter.newID(u.id+"_any")
	from := []exit{{u.id, "", nil}}
	items := "await $feed(" + environment.js(u.p.at("feedUrl")) + ")"
	data := map[string]any{"label": u.name + ": request"}
	if poll.service != "" {
		op := services()[poll.service].Operations[poll.operation]
		environment.request(data, services()[poll.service], op)
		items = bodyName().ReplaceAllString(op.Items, fmt.Sprintf("nodes[%q]?.body", request))
	}
	code := environment.script("return { items: " + items + " }")
	if u.unsupported || len(environment.scripts) > 0 {
		u.fail("PARAMETER", "A parameter of the trigger is computed.")
		return
	}
	if poll.service != "" {
		converter.addNode(u, request, "http-request", data, from, nil)
		from = []exit{{request, "", nil}}
	}
	converter.addNode(
		u,
		list,
		"code",
		map[string]any{"code": code, "label": u.name + ": entries"},
		from,
		nil,
	)
	seen := map[string]any{
		"items": "{{nodes." + list + ".items}}",
		"first": "none",
		"label": u.name + ": new entries",
	}
	if poll.key != "" {
		seen["key"] = poll.key
	}
	converter.addNode(u, fresh, "new-items", seen, []exit{{list, "", nil}}, nil)
	converter.addNode(
		u,
		gate,
		"if-else",
		map[string]any{
			"conditions": []any{map[string]any{
				"left":     "{{nodes." + fresh + ".count}}",
				"operator": "gt",
				"right":    0.0,
			}},
			"label": u.name + ": anything new",
		},
		[]exit{{fresh, "", nil}},
		nil,
	)
	last := fresh
	from = []exit{{gate, "true", nil}}
	if poll.service == "gmail" {
		last = converter.newID(u.id + "_messages")
		credential, _ := data["credential"].(string)
		code := withSections(fmt.Sprintf(
			"return { items: await $mails(nodes[%q].items, %s) }",
			fresh,
			quote(credential),
		))
		converter.addNode(
			u,
			last,
			"code",
			map[string]any{
				"code":       code,
				"label":      u.name + ": messages",
				"timeout_ms": 60_000.0,
			},
			from,
			nil,
		)
		from = []exit{{last, "", nil}}
	}
	s := listStream(last, nil)
	s.from, s.guards, s.same = from, map[string]string{"": u.id, gate: "true"}, []*unit{u}
	u.outputs[0] = s
}

// webhookTriggers are triggers for which n8n registers a webhook at a service, with the
// name of the service.
var webhookTriggers = map[string]string{
	"acuitySchedulingTrigger": "Acuity Scheduling",
	"activeCampaignTrigger":   "ActiveCampaign",
	"asanaTrigger":            "Asana",
	"bitbucketTrigger":        "Bitbucket",
	"calTrigger":              "Cal.com",
	"calendlyTrigger":         "Calendly",
	"chargebeeTrigger":        "Chargebee",
	"clickUpTrigger":          "ClickUp",
	"convertKitTrigger":       "ConvertKit",
	"customerIoTrigger":       "Customer.io",
	"eventbriteTrigger":       "Eventbrite",
	"facebookTrigger":         "Facebook",
	"facebookLeadAdsTrigger":  "Facebook Lead Ads",
	"figmaTrigger":            "Figma",
	"githubTrigger":           "GitHub",
	"gitlabTrigger":           "GitLab",
	"gumroadTrigger":          "Gumroad",
	"helpScoutTrigger":        "Help Scout",
	"hubspotTrigger":          "HubSpot",
	"jiraTrigger":             "Jira",
	"jotFormTrigger":          "JotForm",
	"koBoToolboxTrigger":      "KoboToolbox",
	"lemlistTrigger":          "lemlist",
	"linearTrigger":           "Linear",
	"mailchimpTrigger":        "Mailchimp",
	"mailerLiteTrigger":       "MailerLite",
	"mauticTrigger":           "Mautic",
	"microsoftTeamsTrigger":   "Microsoft Teams",
	"mondayTrigger":           "monday.com",
	"netlifyTrigger":          "Netlify",
	"onfleetTrigger":          "Onfleet",
	"payPalTrigger":           "PayPal",
	"pipedriveTrigger":        "Pipedrive",
	"postmarkTrigger":         "Postmark",
	"sendInBlueTrigger":       "Brevo",
	"shopifyTrigger":          "Shopify",
	"stripeTrigger":           "Stripe",
	"surveyMonkeyTrigger":     "SurveyMonkey",
	"taigaTrigger":            "Taiga",
	"theHiveTrigger":          "TheHive",
	"theHiveProjectTrigger":   "TheHive",
	"trelloTrigger":           "Trello",
	"twilioTrigger":           "Twilio",
	"typeformTrigger":         "Typeform",
	"webflowTrigger":          "Webflow",
	"wiseTrigger":             "Wise",
	"wooCommerceTrigger":      "WooCommerce",
	"workableTrigger":         "Workable",
	"wufooTrigger":            "Wufoo",
	"zendeskTrigger":          "Zendesk",
	"ciscoWebexTrigger":       "Webex",
	"formIoTrigger":           "Form.io",
	"formstackTrigger":        "Formstack",
	"keapTrigger":             "Keap",
	"getResponseTrigger":      "GetResponse",
	"copperTrigger":           "Copper",
	"boxTrigger":              "Box",
	"autopilotTrigger":        "Autopilot",
	"affinityTrigger":         "Affinity",
}

// convertSubscribed makes a webhook trigger whose address has to be registered at the
// service.
func convertSubscribed(converter *converter, unit *unit) {
	service := webhookTriggers[shortKind(unit.kind)]
	unit.approximate(
		"ADDRESS",
		"Register the address of the workflow's hook at "+service+
			", for the events that are wanted: n8n does that itself. Set the trigger's auth to check the signature of "+
			service+".",
	)
	switch shortKind(unit.kind) {
	case "githubTrigger", "gitlabTrigger":
		converter.trigger(unit, map[string]any{"event": "webhook"}, ref{
			path: "trigger",
			js:   "({ headers: trigger.headers, query: trigger.query, body: trigger.body })",
		})
	case "typeformTrigger":
		s := converter.trigger(unit, map[string]any{"event": "webhook"}, payload)
		if simple, ok := unit.p.at("simplifyAnswers").(bool); ok && !simple {
			s.ref = ref{path: "trigger.body.form_response", js: "trigger.body?.form_response", object: true}
			return
		}
		id := converter.newID(unit.id + "_answers")
		converter.addNode(
			unit,
			id,
			"code",
			map[string]any{"code": withSections("return $typeform(trigger.body)"), "label": unit.name + ": answers"},
			s.from,
			nil,
		)
		s.from, s.ref = []exit{{id, "", nil}}, nodeRef(id)
	default:
		converter.trigger(unit, map[string]any{"event": "webhook"}, ref{
			path:   "trigger.body",
			js:     "trigger.body",
			object: true,
		})
	}
	if strings.HasPrefix(shortKind(unit.kind), "jotForm") {
		unit.approximate("FIELDS", "The fields of the form have JotForm's own names.")
	}
}
