package httpapi

import (
	"encoding/json"
	"strconv"

	"satchel/agent"
	"satchel/httpapi/rest"
	"satchel/store"
)

type listEventsIn struct {
	Type      []string   `query:"type" doc:"Events with this name or pattern, such as message.*; may be repeated." example:"message.received"`
	GatewayID string     `query:"gateway_id" doc:"Events about this gateway." example:"gateway-06f1q2s3t4v5a6b7c8d9"`
	From      agent.Time `query:"from" doc:"Inclusive." format:"date-time"`
	To        agent.Time `query:"to" doc:"Exclusive." format:"date-time"`
	Search    string     `query:"search" doc:"Only events whose data contains this text." example:"order"`
	Cursor    string     `query:"cursor" doc:"next_cursor of the previous page, or the seq of an event: events before it." example:"4182"`
	Limit     *int       `query:"limit" doc:"Maximum number of records, 1 to 200. Higher values are reduced to 200." minimum:"1" default:"50" example:"50"`
}

// eventOut is an event in a list.
type eventOut struct {
	Seq       int64           `json:"seq" doc:"Sequence number within the agent." example:"4182"`
	ID        string          `json:"id" doc:"The webhook-id header of its deliveries." example:"event-06f1q2s3t4v5a6b7c8d9"`
	Type      string          `json:"type" example:"message.received"`
	Data      json.RawMessage `json:"data" doc:"Ids of the records it is about, by type."`
	CreatedAt agent.Time      `json:"created_at" format:"date-time"`
}

type eventsOut struct {
	Events []eventOut `json:"events"`
	Meta   CursorMeta `json:"meta"`
}

func (s *Server) listEvents(call *rest.Call, in *listEventsIn) (eventsOut, error) {
	limit, err := rest.CheckLimit(in.Limit, rest.DefaultLimit, rest.MaxLimit)
	if err != nil {
		return eventsOut{}, err
	}
	filter := store.EventFilter{
		Types:     rest.CommaList(in.Type),
		GatewayID: in.GatewayID,
		From:      in.From,
		To:        in.To,
		Search:    in.Search,
	}
	for _, pattern := range filter.Types {
		if !agent.ValidEventPattern(pattern) {
			return eventsOut{}, agent.Invalid("type", "is neither an event nor a pattern that matches one")
		}
	}
	if len(in.Search) > maxEventSearch {
		return eventsOut{}, agent.Invalid("search", "must have at most 200 bytes")
	}
	if in.Cursor != "" {
		if filter.Before, err = strconv.ParseInt(in.Cursor, 10, 64); err != nil || filter.Before < 1 {
			return eventsOut{}, agent.Invalid("cursor", "is not a cursor of this list")
		}
	}
	found, next, err := call.DB.EventLog(call, filter, limit)
	out := eventsOut{Events: make([]eventOut, len(found)), Meta: CursorMeta{HasMore: next > 0, Limit: limit}}
	for i, e := range found {
		out.Events[i] = eventOut{
			Seq:       e.Seq,
			ID:        e.ID,
			Type:      e.Type,
			Data:      e.Data,
			CreatedAt: e.CreatedAt,
		}
	}
	if next > 0 {
		cursor := strconv.FormatInt(next, 10)
		out.Meta.NextCursor = &cursor
	}
	return out, err
}

const maxEventSearch = 200

type listAllDeliveriesIn struct {
	rest.ListParams
	WebhookID []string `query:"webhook_id" doc:"Deliveries to this subscription; may be repeated." example:"webhook-06f1q2s3t4v5a6b7c8d9"`
	Status    []string `query:"status" doc:"pending, delivered or failed; may be repeated." example:"failed"`
}

func (s *Server) listAllDeliveries(c *rest.Call, in *listAllDeliveriesIn) (deliveriesOut, error) {
	page, err := in.Page("created_at")
	if err != nil {
		return deliveriesOut{}, err
	}
	states := rest.CommaList(in.Status)
	if err := rest.CheckValues("status", states, agent.DeliveryStatuses); err != nil {
		return deliveriesOut{}, err
	}
	found, total, err := c.DB.AllDeliveries(c, rest.CommaList(in.WebhookID), states, page)
	return deliveriesOut{found, rest.MetaOf(page, total)}, err
}

// deliveryOut is a delivery with its event.
type deliveryOut struct {
	agent.Delivery
	Body agent.Envelope `json:"body" doc:"The posted body. For a webhook.test, data is empty."`
}

func (s *Server) getDelivery(c *rest.Call, in *deliveryIn) (deliveryOut, error) {
	d, body, err := c.DB.Delivery(c, in.ID, in.DeliveryID)
	out := deliveryOut{Delivery: d}
	if err == nil {
		err = json.Unmarshal(body, &out.Body)
	}
	return out, err
}
