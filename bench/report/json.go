package report

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/record"
)

// WriteJSON writes all figures to a file: one array, with one line for each figure.
// NaN and infinite values are null.
func (r *Report) WriteJSON(path string) error {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, f := range r.Figures() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		text, err := json.Marshal(jsonFigure(f))
		if err != nil {
			return err
		}
		b.Write(text)
	}
	b.WriteString("\n]\n")
	return record.WriteFile(path, b.Bytes())
}

// jsonFigure returns f in a form that JSON can encode.
func jsonFigure(f figure.Figure) any {
	out := struct {
		Scenario string         `json:"scenario"`
		Layout   string         `json:"layout"`
		Metric   string         `json:"metric"`
		Value    *float64       `json:"value"`
		Unit     string         `json:"unit"`
		Target   *figure.Target `json:"target"`
		OK       bool           `json:"ok"`
	}{f.Scenario, f.Layout, f.Metric, nil, f.Unit, f.Target, f.OK}
	if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
		out.Value = &f.Value
	}
	return out
}
