package httpapi

import (
	"slices"

	"satchel/agent"
	"satchel/httpapi/rest"
)

type listWebhooksIn struct{ rest.ListParams }

type webhooksOut struct {
	Webhooks []agent.Webhook `json:"webhooks"`
	Meta     rest.Meta       `json:"meta"`
}

func (s *Server) listWebhooks(c *rest.Call, in *listWebhooksIn) (webhooksOut, error) {
	page, err := in.Page("created_at", "updated_at", "url")
	if err != nil {
		return webhooksOut{}, err
	}
	found, total, err := c.DB.Webhooks(c, page)
	return webhooksOut{found, rest.MetaOf(page, total)}, err
}

type createWebhookIn struct {
	Body struct {
		agent.WebhookChange
		URL    agent.Optional[string]   `json:"url" required:"true" doc:"An http or https URL. Private addresses are refused unless the operator allows them." example:"https://example.com/hooks/satchel"`
		Events agent.Optional[[]string] `json:"events" required:"true" doc:"Event names, or patterns such as workflow.* and *." example:"[\"workflow.complete\",\"message.received\"]"`
	}
}

type secretWebhookOut struct {
	agent.Webhook
	Secret string `json:"secret" doc:"Signs deliveries. Only shown in this response." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
}

func webhookLocation(c *rest.Call, out any) string {
	return "/api/agents/" + c.DB.ID() + "/webhooks/" + out.(secretWebhookOut).ID
}

func (s *Server) createWebhook(c *rest.Call, in *createWebhookIn) (secretWebhookOut, error) {
	change := in.Body.WebhookChange
	change.URL, change.Events = in.Body.URL, in.Body.Events
	made, secret, err := s.options.Webhooks.Create(c, c.DB, change)
	return secretWebhookOut{made, secret}, err
}

type webhookIn struct {
	ID string `path:"webhookId" doc:"Id of the subscription." example:"webhook-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) getWebhook(c *rest.Call, in *webhookIn) (agent.Webhook, error) {
	return c.DB.Webhook(c, in.ID)
}

type updateWebhookIn struct {
	webhookIn
	Body agent.WebhookChange
}

func (s *Server) updateWebhook(c *rest.Call, in *updateWebhookIn) (agent.Webhook, error) {
	return s.options.Webhooks.Update(c, c.DB, in.ID, in.Body)
}

func (s *Server) deleteWebhook(c *rest.Call, in *webhookIn) (none, error) {
	return none{}, s.options.Webhooks.Delete(c, c.DB, in.ID)
}

func (s *Server) rotateWebhook(c *rest.Call, in *webhookIn) (secretWebhookOut, error) {
	changed, secret, err := s.options.Webhooks.Rotate(c, c.DB, in.ID)
	return secretWebhookOut{changed, secret}, err
}

func (s *Server) testWebhook(c *rest.Call, in *webhookIn) (agent.Delivery, error) {
	return s.options.Webhooks.Test(c, c.DB, in.ID)
}

type listDeliveriesIn struct {
	webhookIn
	rest.ListParams
	Status []string `query:"status" doc:"pending, delivered or failed; may be repeated." example:"failed"`
}

type deliveriesOut struct {
	Deliveries []agent.Delivery `json:"deliveries"`
	Meta       rest.Meta        `json:"meta"`
}

func (s *Server) listDeliveries(c *rest.Call, in *listDeliveriesIn) (deliveriesOut, error) {
	page, err := in.Page("created_at")
	if err != nil {
		return deliveriesOut{}, err
	}
	states := rest.CommaList(in.Status)
	for _, state := range states {
		if !slices.Contains(agent.DeliveryStatuses, agent.DeliveryStatus(state)) {
			return deliveriesOut{}, agent.Invalid("status", "must be pending, delivered or failed")
		}
	}
	found, total, err := c.DB.Deliveries(c, in.ID, states, page)
	return deliveriesOut{found, rest.MetaOf(page, total)}, err
}

type deliveryIn struct {
	webhookIn
	DeliveryID string `path:"deliveryId" doc:"Id of the delivery." example:"delivery-06f1q2s3t4v5a6b7c8d9"`
}

func (s *Server) redeliver(c *rest.Call, in *deliveryIn) (agent.Delivery, error) {
	return s.options.Webhooks.Redeliver(c, c.DB, in.ID, in.DeliveryID)
}
