// Uses the types that openapi-typescript generates from openapi.yaml. It has to
// type-check.
import createClient from 'openapi-fetch'
import type { components, paths } from './messagehub.js'

const event: components['schemas']['Event'] = {
  id: '0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41',
  recipient: '5790001330552',
  origin: 'TimeSeries',
  contentType: 'measured-data',
  documentType: 'D',
  supportsBundling: true,
  weight: 1,
  payload: { kwh: [1.5, 1.25] },
}

// run sends an event to an actor, peeks as this actor, and dequeues.
export async function run(baseUrl: string): Promise<string> {
  const hub = createClient<paths>({ baseUrl })
  const header = { 'X-Actor-Id': event.recipient }
  const sent = await hub.POST('/v1/data-available', { body: [event] })
  if (sent.error) {
    return `${sent.error.type}: ${sent.error.detail}`
  }
  const peeked = await hub.GET('/v1/peek', { params: { header } })
  const bundleId = peeked.response.headers.get('MessageId')
  if (bundleId === null) {
    return 'no data'
  }
  await hub.DELETE('/v1/dequeue/{bundleId}', { params: { header, path: { bundleId } } })
  return `${sent.data.accepted} accepted`
}
