package ingest

import "github.com/messagehub/messagehub/api/servicebus/internal/busclient"

// CloseTimeout lets tests say how long stopping may take.
const CloseTimeout = busclient.CloseTimeout
