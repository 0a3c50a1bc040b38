package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/filter"
)

// A signFlags contains the flags that set a subscription's secret.
type signFlags struct {
	secret, file string
}

const signHelp = "A secret that begins with whsec_ (shared, v1) or whsk_ (private key, v1a) signs calls as Standard Webhooks\n" +
	"specifies; any other text is the key of an HMAC in the Authorization header."

func (s *signFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.secret, "secret", "", "sign calls with this `SECRET`; other users of the machine can read it")
	f.StringVar(&s.file, "secret-file", "", "sign calls with the secret in the first line of `FILE`")
}

// readSecret returns the secret, or nil if no flag sets one.
func (s *signFlags) readSecret() (*string, error) {
	switch {
	case s.secret != "" && s.file != "":
		return nil, errors.New("--secret and --secret-file: want one of them")
	case s.secret != "":
		return &s.secret, nil
	case s.file != "":
		lines, err := readSecretFile(s.file)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		return &lines[0], nil
	}
	return nil, nil //nolint:nilnil // no secret is named
}

// A draftFlags contains the flags that set the members of a subscription.
type draftFlags struct {
	id          string
	draft       domain.Subscription
	formFields  []string
	attachments []string
	delivery    string
	headers     []string
	headerFile  string
	sign        signFlags
}

func (d *draftFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&d.id, "id", "", "`UUID` of the subscription; default: a random one")
	f.StringVar(&d.draft.CallbackURL, "callback-url", "", "`URL` that the hub calls (required)")
	f.StringVar(&d.draft.Topic, "topic", domain.DefaultTopic, "`NAME` of the topic")
	f.StringVar(&d.draft.Filter, "filter", "", "only events for which this JMESPath `EXPRESSION` is true")
	f.StringVar(&d.draft.Method, "method", "POST", "`METHOD` of calls, POST or PUT")
	f.StringVar(&d.draft.Encoding, "encoding", domain.JSONEncoding, "`TYPE` of the body, or "+domain.FormEncoding)
	f.StringArrayVar(&d.formFields, "form-field", nil, "`NAME=VALUE` of a field of the form; may be given more than once")
	f.StringVar(&d.draft.PayloadFormField, "payload-form-field", "payload", "`NAME` of the field with the message")
	f.StringArrayVar(&d.attachments, "attachment", nil, "add the value of a JMESPath expression to calls, `NAME=EXPRESSION`; may be given more than once")
	f.StringVar(&d.draft.HMACKeyID, "hmac-key-id", "", "`ID` of the HMAC key in the Authorization header")
	f.StringVar(&d.delivery, "delivery", "async", "`MODE`: async, or sync, where senders wait for the only attempt")
	f.Float64Var(&d.draft.MaxRate, "max-rate", 0, "at most `N` calls per second; 0: no limit")
	f.IntVar(&d.draft.MaxConcurrency, "max-concurrency", 0, "at most `N` calls at the same time; 0: the setting of the hub")
	f.BoolVar(&d.draft.IsOrdered, "ordered", false, "one call at a time, in the order of the events; a failing call delays all later calls")
	f.StringArrayVar(&d.headers, "header", nil, "`NAME: VALUE` of a header of calls; may be given more than once; other users of the machine can read it")
	f.StringVar(&d.headerFile, "header-file", "", "headers of calls in `FILE`, one NAME: VALUE per line; without headers, the stored headers are kept")
	d.sign.addFlags(f)
}

// flagsOfPointers contains, for each member, the flag that sets it, if the
// names differ.
var flagsOfPointers = map[string]string{
	"jmespath_query": "filter", "form_fields": "form-field", "attachments": "attachment", "hmac_secret_key": "secret", "headers": "header",
}

// readFlags validates the flags with the same rules as the hub.
func (d *draftFlags) readFlags() (id domain.SubscriptionID, hidden hubclient.Hidden, err error) {
	if d.draft.CallbackURL == "" {
		return id, hidden, errors.New("--callback-url is missing; say what the hub is to call")
	}
	if d.id == "" {
		id, err = newSubscriptionID()
	} else if id, err = domain.ParseSubscriptionID(d.id); err != nil {
		err = fmt.Errorf("--id: %w", err)
	}
	if err != nil {
		return id, hidden, err
	}
	if d.draft.FormFields, err = parsePairs("--form-field", d.formFields); err != nil {
		return id, hidden, err
	}
	if d.draft.Attachments, err = parsePairs("--attachment", d.attachments); err != nil {
		return id, hidden, err
	}
	if d.draft.IsSync = d.delivery == "sync"; !d.draft.IsSync && d.delivery != "async" {
		return id, hidden, fmt.Errorf("--delivery: want async or sync, got %q", domain.Shorten(d.delivery))
	}
	if hidden.Headers, err = d.readHeaders(); err != nil {
		return id, hidden, err
	}
	if err := checkDraft(&d.draft, hidden.Headers); err != nil {
		pointer, detail, _ := strings.Cut(err.Error(), ": ")
		name, rest, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		flag := flagsOfPointers[name]
		if flag == "" {
			flag = strings.ReplaceAll(name, "_", "-")
		}
		if rest != "" {
			flag += " " + strings.TrimSuffix(rest, "/expression")
		}
		return id, hidden, fmt.Errorf("--%s: %s", flag, detail)
	}
	hidden.Secret, err = d.sign.readSecret()
	return id, hidden, err
}

// readHeaders returns the headers from the flags and the file, or nil if there
// are none.
func (d *draftFlags) readHeaders() (map[string]string, error) {
	texts := d.headers
	if d.headerFile != "" {
		lines, err := readSecretFile(d.headerFile)
		if err != nil {
			return nil, fmt.Errorf("--header-file: %w", err)
		}
		texts = slices.Concat(texts, lines)
	}
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // no header is named
	}
	all := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, ":")
		switch _, twice := all[name]; {
		case !ok || name == "":
			return nil, errors.New("--header: want NAME: VALUE") // without the text, which may be a secret
		case twice:
			return nil, fmt.Errorf("--header: %s occurs twice", domain.Shorten(name))
		}
		all[name] = strings.TrimSpace(value)
	}
	return all, nil
}

// checkDraft returns an error if a hub would reject d. The error begins with a
// JSON pointer.
func checkDraft(d *domain.Subscription, headers map[string]string) error {
	d.SetDefaults()
	if err := d.Check(); err != nil {
		return err
	}
	if err := webhook.CheckHeaders(headers); err != nil {
		return err
	}
	_, _, err := filter.CompileSubscription(d)
	return err
}

// parsePairs parses the values NAME=VALUE of a repeatable flag into a map.
func parsePairs(flag string, texts []string) (map[string]string, error) {
	if len(texts) == 0 {
		return nil, nil //nolint:nilnil // no flag is no map
	}
	all := make(map[string]string, len(texts))
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		switch _, twice := all[name]; {
		case !ok || name == "":
			return nil, fmt.Errorf("%s: want NAME=VALUE, got %q", flag, domain.Shorten(text))
		case twice:
			return nil, fmt.Errorf("%s: %s occurs twice", flag, domain.Shorten(name))
		}
		all[name] = value
	}
	return all, nil
}

func (p *process) subscriptionsCreate() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	var d draftFlags
	cmd := s.command("create", "Subscribe to a topic",
		"The hub calls the URL with each event that is published from then on. With --id, the command may be repeated:\n"+
			"it creates the subscription, or replaces it. The topic object-changed is for operators: the\n"+
			"command sends the hub's token for it, or a token of an issuer with the role of an operator.\n\nTest the receiver with messagehub certify first.\n\n"+signHelp, nil)
	cmd.Use, cmd.Example = "create --actor ID --callback-url URL", "  messagehub subscriptions create --actor 5790001330552 --callback-url https://example.org/hook\n"+
		"  messagehub subscriptions create --actor 5790001330552 --callback-url https://example.org/hook --filter \"type == 'made'\" --secret-file secret.txt"
	d.addFlags(cmd.Flags())
	dataFlag(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		hub, err := s.a.checkActor(s.p)
		if err != nil {
			return p.usage("%w", err)
		}
		defer hub.Close()
		id, hidden, err := d.readFlags()
		if err != nil {
			return p.usage("%w", err)
		}
		if err := p.useOperatorTokenFor(d.draft.Topic, config.Inputs{Flags: cmd.Flags()}, hub); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, s.a.timeout)
		defer cancel()
		_, created, err := hub.PutSubscription(ctx, s.a.actor, id, &d.draft, hidden)
		if err != nil {
			return explainRefusal(err)
		}
		done := "replaced"
		if created {
			done = "created"
		}
		_, err = fmt.Fprintf(p.out, "%s %s\n", done, id)
		return err
	})
	return cmd
}

func (p *process) subscriptionsRotate() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	var f signFlags
	cmd := s.command("rotate ID", "Replace the secret of a subscription",
		"For a grace period (push.secret-grace of the hub, 24 hours), calls are signed with the new secret and with the previous\n"+
			"one, so give the new one to the receiver meanwhile. Another rotation within that period ends the oldest secret.\n"+
			"Without --secret or --secret-file, a random secret of Standard Webhooks (whsec_) is generated and printed.\n"+signHelp,
		func(ctx context.Context, id domain.SubscriptionID) error {
			secret, err := f.readSecret()
			if err != nil {
				return p.usage("%w", err)
			}
			if secret == nil {
				random := make([]byte, 32)
				if _, err := rand.Read(random); err != nil {
					return err
				}
				text := "whsec_" + base64.StdEncoding.EncodeToString(random)
				secret = &text
				fmt.Fprintln(p.out, text) // printed before the request, so that a generated secret is not lost
			}
			if _, err := s.hub.RotateSubscription(ctx, s.a.actor, id, *secret); err != nil {
				return err
			}
			fmt.Fprintf(p.err, "replaced the secret of %s\n", id)
			return nil
		})
	f.addFlags(cmd.Flags())
	return cmd
}
