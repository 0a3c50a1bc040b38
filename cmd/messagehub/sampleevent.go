package main

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// sampleOrigin returns an origin of the configuration whose bundles need no
// running domain. It prefers Charges. It returns false if every domain creates its
// content on request.
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

// sampleEvent returns an event for actor that a hub accepts from a domain with
// this mode.
func sampleEvent(actor string, origin domain.Origin, mode domain.ContentMode) string {
	payload := ""
	if mode == domain.Inline {
		payload = `,"payload":{"price":1}`
	}
	return fmt.Sprintf(`{"id":"%s","recipient":"%s","origin":"%s","contentType":"ChargePriceList","documentType":"D18","supportsBundling":true,"weight":1%s}`,
		uuid.NewString(), actor, origin, payload)
}
