package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"satchel/agent"
)

// recordsOf reads records of one kind by their ids.
type recordsOf func(tx *Tx, ids string) (map[string]any, error)

// recordKinds are the kinds of records that lists show, each read as its list
// reads them.
var recordKinds = map[string]recordsOf{
	agent.KindSource:       byID(sourceListing, func(r agent.Source) string { return r.ID }),
	agent.KindContact:      byID(contactListing, func(r agent.Contact) string { return r.ID }),
	agent.KindConversation: conversationRecords,
	KindMessage: byID(
		listing[agent.Message]{listed{table: "messages", columns: messageColumns}, scanMessage},
		func(r agent.Message) string {
			return strconv.FormatInt(r.ID, 10)
		},
	),
	agent.KindWorkflow:  byID(workflowListing, func(r agent.Workflow) string { return r.ID }),
	agent.KindExecution: byID(executionListing, func(r agent.Execution) string { return r.ID }),
	agent.KindSchedule:  byID(scheduleListing, func(r agent.Schedule) string { return r.ID }),
	agent.KindRun: byID(
		listing[agent.Run]{listed{table: "runs", columns: runColumns}, scanRun},
		func(r agent.Run) string { return r.ID },
	),
	agent.KindTask:       byID(taskListing, func(r agent.Task) string { return r.ID }),
	agent.KindTool:       byID(toolListing, func(r agent.Tool) string { return r.ID }),
	agent.KindMCP:        byID(mcpListing, func(r agent.MCPServer) string { return r.ID }),
	agent.KindCredential: credentialRecords,
	agent.KindAPI:        apiRecords,
	agent.KindGateway:    byID(gatewayListing, func(r agent.Gateway) string { return r.ID }),
	agent.KindWebhook:    byID(webhookListing, func(r agent.Webhook) string { return r.ID }),
	agent.KindDelivery:   byID(deliveryListing, func(r agent.Delivery) string { return r.ID }),
	agent.KindSession:    byID(sessionListing, func(r agent.Session) string { return r.ID }),
	KindTable:            tableRecords,
	agent.KindTakeover: byID(
		listing[agent.Takeover]{listed{table: "takeovers", columns: takeoverColumns}, scanTakeover},
		func(r agent.Takeover) string { return r.ID },
	),
}

func byID[T any](l listing[T], id func(T) string) recordsOf {
	query := fmt.Sprintf("SELECT %s FROM %s WHERE id IN (SELECT value FROM json_each(?))", l.columns, l.table)
	return func(tx *Tx, ids string) (map[string]any, error) {
		found, err := all(tx, l.scan, query, ids)
		records := make(map[string]any, len(found))
		for _, r := range found {
			records[id(r)] = r
		}
		return records, err
	}
}

// credentialRecords reads credentials as their list does.
func credentialRecords(tx *Tx, ids string) (map[string]any, error) {
	found, err := all(
		tx,
		scanCredential,
		"SELECT "+credentialColumns+" FROM _credentials WHERE id IN (SELECT value FROM json_each(?))",
		ids,
	)
	if err == nil {
		err = tx.completeCredentials(found)
	}
	records := make(map[string]any, len(found))
	for _, c := range found {
		records[c.ID] = c
	}
	return records, err
}

// apiRecords reads APIs as their list does.
func apiRecords(tx *Tx, ids string) (map[string]any, error) {
	found, err := all(tx, scanAPI, "SELECT "+apiColumns+" FROM _apis WHERE id IN (SELECT value FROM json_each(?))", ids)
	if err == nil {
		err = tx.completeAPIs(found)
	}
	records := make(map[string]any, len(found))
	for _, a := range found {
		records[a.ID] = a
	}
	return records, err
}

// conversationRecords reads conversations as their list does.
func conversationRecords(tx *Tx, ids string) (map[string]any, error) {
	found, err := all(
		tx,
		scanConversation,
		"SELECT "+conversationColumns+" FROM conversations WHERE id IN (SELECT value FROM json_each(?))",
		ids,
	)
	records := make(map[string]any, len(found))
	for _, c := range found {
		if err == nil {
			records[c.ID], err = tx.summary(c)
		}
	}
	return records, err
}

// Records reads records of several kinds by their ids, as their lists show them.
// Those that do not exist are left out.
func (db *DB) Records(ctx context.Context, ids map[string][]string) (map[string]map[string]any, error) {
	return Read(ctx, db, func(tx *Tx) (map[string]map[string]any, error) {
		records := map[string]map[string]any{}
		for kind, wanted := range ids {
			read, known := recordKinds[kind]
			if !known {
				continue
			}
			list, err := json.Marshal(wanted)
			if err != nil {
				return nil, err
			}
			if records[kind], err = read(tx, string(list)); err != nil {
				return nil, err
			}
		}
		return records, nil
	})
}

// SourcesAtWork lists up to 50 sources that are being processed, with their
// progress.
func (db *DB) SourcesAtWork(ctx context.Context) ([]agent.Source, error) {
	return Read(ctx, db, func(tx *Tx) ([]agent.Source, error) {
		ids, err := all(
			tx,
			scanID,
			"SELECT id FROM sources WHERE status NOT IN ('ready','error') ORDER BY seq LIMIT 50",
		)
		if err != nil {
			return nil, err
		}
		sources := make([]agent.Source, 0, len(ids))
		for _, id := range ids {
			s, err := tx.source(id)
			if err != nil {
				return nil, err
			}
			sources = append(sources, s)
		}
		return sources, nil
	})
}

// Inbox counts what currently needs a person's attention.
type Inbox struct {
	Waiting int `json:"waiting"`
	Unread  int `json:"unread"` // conversations with messages that were neither read nor answered
}

// Inbox counts the items that are waiting for a person, and the conversations with
// unread messages.
func (db *DB) Inbox(ctx context.Context) (Inbox, error) {
	return Read(ctx, db, func(tx *Tx) (i Inbox, err error) {
		if err := tx.value(&i.Waiting, selectWaiting, maxHandovers); err != nil {
			return i, err
		}
		return i, tx.value(&i.Unread, selectUnread)
	})
}
