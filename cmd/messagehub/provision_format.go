package main

import (
	"encoding/json"
	"io"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/azuretemplate"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
)

// formatNames lists all formats, for help texts and errors.
const formatNames = "arm, bicep, az or json"

// formats contains, by name, functions that write the resources that a hub with
// this configuration needs.
var formats = map[string]func(io.Writer, *config.Config) error{
	"arm":   writeText(azuretemplate.ARM),
	"az":    writeText(azuretemplate.Script),
	"bicep": writeText(azuretemplate.Bicep),
	"json":  writeTable,
}

func writeText(text func(*config.Config) []byte) func(io.Writer, *config.Config) error {
	return func(w io.Writer, cfg *config.Config) error {
		_, err := w.Write(text(cfg))
		return err
	}
}

// writeTable writes the table of resources as JSON.
func writeTable(w io.Writer, cfg *config.Config) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(deployment.NewTable(cfg))
}
