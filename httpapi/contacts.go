package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listContactsIn struct {
	rest.ListParams
	Full bool     `query:"full" doc:"true: return all fields of each contact, and last_message_at."`
	Tag  []string `query:"tag" doc:"Contacts with any of these tags; may be repeated." example:"vip"`
}

// contactItem is a contact in a list.
type contactItem struct {
	ID        string     `json:"id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
	Name      string     `json:"name" example:"Ada Lovelace"`
	Email     string     `json:"email" example:"ada@example.com"`
	Phone     string     `json:"phone" example:"+1 555 0100"`
	ChatbotA  string     `json:"chatbot_a" example:"@ada"`
	Tags      []string   `json:"tags" example:"[\"vip\"]"`
	CreatedAt agent.Time `json:"created_at" format:"date-time"`

	// Only if full is set.
	ChatbotB      *string         `json:"chatbot_b,omitempty" example:"+15550100"`
	SocialHandle  *string         `json:"social_handle,omitempty" example:"@ada"`
	ExternalID    *string         `json:"external_id,omitempty" example:"crm-42"`
	Notes         *string         `json:"notes,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty" doc:"Any JSON object."`
	UpdatedAt     *agent.Time     `json:"updated_at,omitempty" format:"date-time"`
	LastMessageAt *agent.Time     `json:"last_message_at,omitempty" format:"date-time" doc:"Newest message in the contact's conversations; absent if there is none."`
}

func newContactItem(x agent.Contact) contactItem {
	return contactItem{
		ID:        x.ID,
		Name:      x.Name,
		Email:     x.Email,
		Phone:     x.Phone,
		ChatbotA:  x.Telegram,
		Tags:      x.Tags,
		CreatedAt: x.CreatedAt,
	}
}

// fullItems returns contacts with all their fields.
func fullItems(call *rest.Call, contacts []agent.Contact) ([]contactItem, error) {
	ids := make([]string, len(contacts))
	for i, x := range contacts {
		ids[i] = x.ID
	}
	last, err := call.DB.LastMessages(call, ids)
	items := make([]contactItem, len(contacts))
	for i := range contacts {
		x := &contacts[i]
		items[i] = newContactItem(*x)
		items[i].ChatbotB, items[i].SocialHandle, items[i].ExternalID, items[i].Notes =
			&x.WhatsApp, &x.SocialHandle, &x.ExternalID, &x.Notes
		items[i].Metadata, items[i].UpdatedAt = x.Metadata, &x.UpdatedAt
		if at, ok := last[x.ID]; ok {
			items[i].LastMessageAt = &at
		}
	}
	return items, err
}

type contactsOut struct {
	Contacts []contactItem `json:"contacts"`
	Meta     rest.Meta     `json:"meta"`
}

func (s *Server) listContacts(c *rest.Call, in *listContactsIn) (contactsOut, error) {
	page, err := in.Page("name", "email", "created_at", "updated_at")
	if err != nil {
		return contactsOut{}, err
	}
	if !in.Full {
		return contactsPage(c, in.Tag, page)
	}
	contacts, total, err := c.DB.Contacts(c, agent.CleanTags(in.Tag), page)
	if err != nil {
		return contactsOut{}, err
	}
	items, err := fullItems(c, contacts)
	return contactsOut{items, rest.MetaOf(page, total)}, err
}

func contactsPage(c *rest.Call, tags []string, page store.Page) (contactsOut, error) {
	contacts, total, err := c.DB.Contacts(c, agent.CleanTags(tags), page)
	items := make([]contactItem, len(contacts))
	for i, x := range contacts {
		items[i] = newContactItem(x)
	}
	return contactsOut{items, rest.MetaOf(page, total)}, err
}

type createContactIn struct {
	Body struct {
		Name string `json:"name" required:"true" example:"Ada Lovelace"`
		agent.ContactChange
	}
}

func contactLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/contacts/" + out.(agent.Contact).ID
}

func (s *Server) createContact(c *rest.Call, in *createContactIn) (agent.Contact, error) {
	change := in.Body.ContactChange
	change.Name = agent.Some(in.Body.Name)
	return c.DB.CreateContact(c, change)
}

type contactIn struct {
	ID string `path:"contactId" doc:"Id of the contact." example:"contact-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getContact(c *rest.Call, in *contactIn) (agent.Contact, error) {
	return c.DB.Contact(c, in.ID)
}

type updateContactIn struct {
	contactIn
	Body agent.ContactChange
}

func (s *Server) updateContact(c *rest.Call, in *updateContactIn) (agent.Contact, error) {
	return c.DB.UpdateContact(c, in.ID, in.Body)
}

func (s *Server) deleteContact(c *rest.Call, in *contactIn) (none, error) {
	return none{}, c.DB.DeleteContact(c, in.ID)
}

type resolveContactIn struct {
	Email      string `query:"email" doc:"Email address, ignoring case." example:"ada@example.com"`
	Phone      string `query:"phone" doc:"Phone number; only its digits are compared."`
	ChatbotA   string `query:"chatbot_a" doc:"Telegram user name, with or without @."`
	ChatbotB   string `query:"chatbot_b" doc:"WhatsApp number."`
	ExternalID string `query:"external_id" doc:"Id in another system."`
}

type resolved struct {
	Contact struct {
		ID    string `json:"id" example:"contact-06f1q2s3t4v5a6b7c8d9"`
		Name  string `json:"name" example:"Ada Lovelace"`
		Email string `json:"email" example:"ada@example.com"`
	} `json:"contact"`
	MatchedBy string `json:"matched_by" doc:"The identifier that matched." example:"email"`
}

func (s *Server) resolveContact(call *rest.Call, in *resolveContactIn) (out resolved, err error) {
	wanted := agent.Contact{
		Email:      in.Email,
		Phone:      in.Phone,
		Telegram:   in.ChatbotA,
		WhatsApp:   in.ChatbotB,
		ExternalID: in.ExternalID,
	}
	var value string
	for _, field := range agent.ContactIdentifiers {
		v := wanted.Identifier(field)
		if v == "" {
			continue
		}
		if value != "" {
			return out, agent.Invalid(field, "must be the only identifier")
		}
		out.MatchedBy, value = field, v
	}
	if value == "" {
		return out, agent.Invalid(
			"email",
			"or another identifier is required: phone, Telegram, WhatsApp or external_id",
		)
	}
	contact, err := call.DB.ResolveContact(call, out.MatchedBy, value)
	out.Contact.ID, out.Contact.Name, out.Contact.Email = contact.ID, contact.Name, contact.Email
	return out, err
}

type importContactsIn struct {
	DryRun      bool   `query:"dry_run" doc:"true: store nothing and return what would be stored. Also accepted as a form field."`
	OnDuplicate string `query:"on_duplicate" doc:"update, skip or error. Also accepted as a form field." example:"update"`
}

func (s *Server) importContacts(call *rest.Call) error {
	in, err := rest.Bind[importContactsIn](call)
	if err != nil {
		return err
	}
	fields := map[string]string{"on_duplicate": in.OnDuplicate, "dry_run": strconv.FormatBool(in.DryRun)}
	file, err := rest.FilePart(call, "file", fields)
	if err != nil {
		return err
	}
	rows, err := readContactsCSV(file, maxCSV)
	if err != nil {
		return err
	}
	if err := file.Rest(fields); err != nil {
		return err
	}
	on := store.OnDuplicate(fields["on_duplicate"])
	if on == "" {
		on = store.DuplicateUpdate
	}
	if !slices.Contains([]store.OnDuplicate{store.DuplicateUpdate, store.DuplicateSkip, store.DuplicateError}, on) {
		return agent.Invalid("on_duplicate", "must be update, skip or error")
	}
	dry, err := isDryRun(fields)
	if err != nil {
		return err
	}
	run := call.DB.ImportContacts
	if dry {
		run = dryRun(call.DB)
	}
	result, err := importInBatches(rows, importBatch, func(changes []agent.ContactChange) ([]store.Imported, error) {
		return run(call, changes, on)
	})
	if err != nil {
		return err
	}
	return rest.WriteJSON(call.HTTP, http.StatusOK, result)
}

// importFunc stores rows, or returns what storing them would do.
type importFunc func(ctx context.Context, rows []agent.ContactChange, on store.OnDuplicate) ([]store.Imported, error)

type exportContactsIn struct {
	Format string `query:"format" enum:"csv,json" doc:"Default: csv." example:"csv"`
}

// contactsExport describes an export as JSON, which is streamed.
type contactsExport struct {
	Contacts []agent.Contact `json:"contacts"`
}

func (s *Server) exportContacts(call *rest.Call) error {
	in, err := rest.Bind[exportContactsIn](call)
	if err != nil {
		return err
	}
	asJSON, err := startExport(call, in.Format, call.DB.Agent().Name+"-contacts")
	if err != nil {
		return err
	}
	if asJSON {
		return streamList(call.HTTP.Response(), "contacts", func(write func(json.RawMessage) error) error {
			return call.DB.EachContact(call, func(contact agent.Contact) error {
				raw, err := json.Marshal(contact)
				if err != nil {
					return err
				}
				return write(raw)
			})
		})
	}
	w := writeContactsCSV(call.HTTP.Response())
	if err := call.DB.EachContact(call, w.Write); err != nil {
		return err
	}
	return w.Close()
}
