package api

import (
	_ "embed" // embeds openapi.yaml
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var openAPIDocument []byte

// openAPIAsJSON returns openapi.yaml as JSON, which it converts on first use.
var openAPIAsJSON = sync.OnceValues(func() ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(openAPIDocument, &document); err != nil {
		return nil, fmt.Errorf("openapi.yaml: %w", err)
	}
	return json.Marshal(document)
})

func openAPIJSON(w http.ResponseWriter, _ *http.Request) error {
	text, err := openAPIAsJSON()
	if err != nil {
		return err
	}
	return writeDocument(w, "application/json", text)
}

func openAPIYAML(w http.ResponseWriter, _ *http.Request) error {
	return writeDocument(w, "application/yaml", openAPIDocument)
}

func writeDocument(w http.ResponseWriter, contentType string, text []byte) error {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(text) // Write fails if the client has disconnected
	return nil
}
