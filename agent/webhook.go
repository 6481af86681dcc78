package agent

import (
	"fmt"
	"slices"
)

// Webhook is a subscription: matching events are posted to its URL.
type Webhook struct {
	ID             string   `json:"id" example:"webhook-06f1q2s3t4v5a6b7c8d9"`
	URL            string   `json:"url" example:"https://example.com/hooks/satchel"`
	Events         []string `json:"events" doc:"Event names, or patterns such as workflow.* and *." example:"[\"message.received\"]"`
	Active         bool     `json:"active" doc:"If false, nothing is delivered, and events from that time are not delivered later."`
	CreatedAt      Time     `json:"created_at" format:"date-time"`
	UpdatedAt      Time     `json:"updated_at" format:"date-time"`
	FailureCount   int      `json:"failure_count" doc:"Failed attempts since the last successful one."`
	LastDeliveryAt Time     `json:"last_delivery_at" format:"date-time" nullable:"true" doc:"The last attempt, successful or not; null before the first."`
	LastStatus     *int     `json:"last_status" doc:"HTTP status of the last attempt; null if there was no response."`
}

// WebhookChange is a partial update of a subscription.
type WebhookChange struct {
	URL    Optional[string]   `json:"url,omitempty" doc:"An http or https URL. Private addresses are refused unless the operator allows them." example:"https://example.com/hooks/satchel"`
	Events Optional[[]string] `json:"events,omitempty" doc:"Event names, or patterns such as workflow.* and *." example:"[\"workflow.complete\",\"message.received\"]"`
	Active Optional[bool]     `json:"active,omitempty"`
}

// Apply writes the given fields into w. null clears a field; for active, null
// means false.
func (ch WebhookChange) Apply(w *Webhook) {
	ch.URL.Into(&w.URL)
	ch.Events.Into(&w.Events)
	ch.Active.Into(&w.Active)
}

// Limits of subscriptions.
const (
	MaxWebhooks      = 100 // per agent
	MaxWebhookEvents = 50  // patterns per subscription
)

// Validate checks the fields that clients set.
func (w *Webhook) Validate() error {
	var is Issues
	is.Check(w.URL != "", "url", "is required")
	is.checkURL("url", w.URL)
	is.Check(len(w.Events) > 0, "events", "must name at least one event")
	is.Check(len(w.Events) <= MaxWebhookEvents, "events", fmt.Sprintf("must have at most %d names", MaxWebhookEvents))
	for i, pattern := range w.Events[:min(len(w.Events), MaxWebhookEvents)] {
		is.Check(
			ValidEventPattern(pattern),
			fmt.Sprintf("events[%d]", i),
			"must be an event name or a pattern that matches one",
		)
	}
	return is.Err()
}

// Wants reports whether the subscription matches an event's name.
func (w *Webhook) Wants(event string) bool {
	return slices.ContainsFunc(w.Events, func(pattern string) bool {
		return MatchEvent(pattern, event)
	})
}

// DeliveryStatus is the state of a delivery.
type DeliveryStatus string

// The states of a delivery. A failed delivery is not retried automatically.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliveryDelivered DeliveryStatus = "delivered"
	DeliveryFailed    DeliveryStatus = "failed"
)

// DeliveryStatuses lists the states of a delivery.
var DeliveryStatuses = []DeliveryStatus{DeliveryPending, DeliveryDelivered, DeliveryFailed}

// Delivery is the delivery of one event to one subscription.
type Delivery struct {
	ID             string         `json:"id" example:"delivery-06f1q2s3t4v5a6b7c8d9"`
	Event          string         `json:"event" example:"message.received"`
	EventID        string         `json:"event_id" doc:"The webhook-id header, the same for each attempt." example:"event-06f1q2s3t4v5a6b7c8d9"`
	WebhookID      string         `json:"webhook_id" example:"webhook-06f1q2s3t4v5a6b7c8d9"`
	Attempt        int            `json:"attempt" doc:"Number of attempts made." example:"1"`
	Status         DeliveryStatus `json:"status" enum:"pending,delivered,failed" example:"delivered"`
	ResponseStatus *int           `json:"response_status" doc:"HTTP status of the last attempt; null if there was no response." example:"200"`
	DurationMS     *int           `json:"duration_ms" doc:"Duration of the last attempt." example:"41"`
	Error          string         `json:"error" doc:"Why the last attempt failed."`
	NextAttemptAt  Time           `json:"next_attempt_at" format:"date-time" nullable:"true" doc:"When the next attempt is due; null if there is none."`
	CreatedAt      Time           `json:"created_at" format:"date-time"`
}
