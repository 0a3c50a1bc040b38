package main

import (
	"encoding/json"
	"io"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// formatNames lists the formats, for help and errors.
const formatNames = "json"

// formats write what to deploy for hubs with a configuration.
var formats = map[string]func(io.Writer, *config.Config) error{
	"json": writeTable,
}

// writeTable writes the table as JSON.
func writeTable(w io.Writer, cfg *config.Config) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(deployment.Of(cfg))
}
