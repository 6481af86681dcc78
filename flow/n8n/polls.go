package n8n

import "fmt"

// polls are triggers of n8n that ask a service again and again, and the
// operation that asks the same.
var polls = map[string]struct{ service, operation string }{
	"gmailTrigger": {"gmail", "message.getAll"}, "googleSheetsTrigger": {"googleSheets", "sheet.read"}, "googleDriveTrigger": {"googleDrive", "fileFolder.search"}, "airtableTrigger": {"airtable", "record.search"},
	"notionTrigger": {"notion", "databasePage.getAll"}, "googleCalendarTrigger": {"googleCalendar", "event.getAll"}, "microsoftOutlookTrigger": {"microsoftOutlook", "message.getAll"}, "rssFeedReadTrigger": {"", ""},
}

// convertPoll makes a trigger with a paused schedule, and the request.
func convertPoll(c *converter, u *unit) {
	times := u.p.objects("pollTimes.item")
	if len(times) == 0 {
		times = []params{{"mode": "everyMinute"}}
	}
	for _, t := range times {
		c.schedule(u, oldCronOf(t))
	}
	u.scheduled(c)
	u.approximate("NEW_ITEMS", "n8n gives out what is new since the last time; here each run reads all that the request returns. Keep what was seen in a table, or ask the service for what is new.")
	poll := polls[shortKind(u.kind)]
	e := &env{c: c, u: u, in: u.outputs[0]}
	id := c.newID(u.id + "_request")
	kind, data, items := "http-request", map[string]any{}, ""
	if poll.service == "" {
		kind, data["code"] = "code", e.script("return { items: await $feed("+e.js(u.p.at("feedUrl"))+") }")
		items = fmt.Sprintf("(nodes[%q]?.items ?? [])", id)
	} else {
		op := services()[poll.service].Operations[poll.operation]
		e.request(data, services()[poll.service], op)
		items = "(" + bodyName.ReplaceAllString(op.Items, fmt.Sprintf("nodes[%q]?.body", id)) + ")"
	}
	if u.unsupported || len(e.scripts) > 0 {
		u.fail("PARAMETER", "A parameter of the trigger is computed.")
		return
	}
	data["label"] = u.name + ": request"
	c.put(u, id, kind, data, []exit{{u.id, "", nil}}, nil)
	u.outputs[0] = &stream{from: []exit{{id, "", nil}}, list: true, ref: ref{js: items}, guards: map[string]string{"": u.id}, same: []*unit{u}}
}
