package main

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// sampleOrigin returns a configured origin whose bundles do not need a running
// domain, preferably Charges. It returns false if every domain creates content
// on request.
func sampleOrigin(cfg *config.Config) (origin domain.Origin, mode domain.ContentMode, exists bool) {
	modes := cfg.Content()
	for _, candidate := range cfg.Groups().Origins() {
		isFirst, isCharges := !exists, candidate.String() == "Charges"
		if modes[candidate] != domain.Request && (isFirst || isCharges) {
			origin, mode, exists = candidate, modes[candidate], true
		}
	}
	return origin, mode, exists
}

// sampleEvent returns an event for actor that a hub accepts from an origin with
// this content mode.
func sampleEvent(actor string, origin domain.Origin, mode domain.ContentMode) string {
	payload := ""
	if mode == domain.Inline {
		payload = `,"payload":{"price":1}`
	}
	return fmt.Sprintf(`{"id":"%s","recipient":"%s","origin":"%s","contentType":"ChargePriceList","documentType":"D18","supportsBundling":true,"weight":1%s}`,
		uuid.NewString(), actor, origin, payload)
}
