package doctor

import "fmt"

// A State says how a check ended.
type State string

// States of a finding.
const (
	OK         State = "ok"
	Warning    State = "warning" // the hub works, but with a disadvantage or a risk
	Fault      State = "fault"   // the hub, or part of it, does not work
	NotChecked State = "not checked"
)

// A Finding is one line of a doctor's report.
type Finding struct {
	Check   string `json:"check"`             // name of the check, which never changes between releases
	Subject string `json:"subject,omitempty"` // what was checked, such as the name of a queue; "" if the check examines only one thing
	State   State  `json:"state"`
	Text    string `json:"text"`             // result without secrets
	Remedy  string `json:"remedy,omitempty"` // what to do next; never empty for a warning or a fault
}

// Passed returns a finding that reports no fault.
func Passed(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, State: OK, Text: fmt.Sprintf(format, args...)}
}

// Warn returns a finding that is a warning.
func Warn(subject, text, remedy string) Finding {
	return Finding{Subject: subject, State: Warning, Text: text, Remedy: remedy}
}

// Fail returns a finding that is a fault.
func Fail(subject, text, remedy string) Finding {
	return Finding{Subject: subject, State: Fault, Text: text, Remedy: remedy}
}

// Skip returns a finding that subject was not checked. format is the reason.
func Skip(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, State: NotChecked, Text: fmt.Sprintf("not checked, since "+format, args...)}
}

// A Report contains the findings of all checks, in the order of the table.
type Report struct {
	Findings []Finding
}

// Count returns the number of findings with this state.
func (r *Report) Count(s State) (n int) {
	for i := range r.Findings {
		if r.Findings[i].State == s {
			n++
		}
	}
	return n
}
