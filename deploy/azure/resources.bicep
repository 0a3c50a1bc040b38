// Not compiled by the project, which has no Bicep compiler. Check with: az bicep build --stdout --file FILE, and az deployment group validate.
// Accounts, queues, containers, identities and roles of MessageHub. Written by messagehub provision --format; do not edit it, but write it again.

@description('Region of all resources')
param location string = resourceGroup().location

@description('What the names of resources begin with: up to 11 lower case letters')
param prefix string = 'messagehub'

@description('Keep replicas in several availability zones, in regions that have them')
param zoneRedundant bool = true

@description('Subnet of private endpoints; empty: the accounts are reached over the internet. With it, Service Bus has the tier Premium')
param privateEndpointSubnetId string = ''

@description('Object id of the managed identity or service principal of the domain Aggregations; empty: it gets no roles')
param domainAggregationsPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain Charges; empty: it gets no roles')
param domainChargesPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain MarketRoles; empty: it gets no roles')
param domainMarketRolesPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain MeteringPoints; empty: it gets no roles')
param domainMeteringPointsPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain TimeSeries; empty: it gets no roles')
param domainTimeSeriesPrincipalId string = ''

@description('Name of the Cosmos account')
param cosmosAccountName string = '${prefix}-${uniqueString(resourceGroup().id)}'

@description('Consistency of the Cosmos account. With Strong or BoundedStaleness, what a region loses is bounded')
@allowed([
  'Session'
  'BoundedStaleness'
  'Strong'
])
param cosmosConsistency string = 'Session'

@description('Autoscale maximum of the container catalog in RU/s; deploying again sets it back to this')
param catalogMaxThroughput int = 4000

@description('Autoscale maximum of the container cabinet in RU/s; deploying again sets it back to this')
param cabinetMaxThroughput int = 4000

@description('Autoscale maximum of the container bundles in RU/s; deploying again sets it back to this')
param bundlesMaxThroughput int = 4000

@description('Autoscale maximum of the container streams in RU/s; deploying again sets it back to this')
param streamsMaxThroughput int = 4000

@description('Autoscale maximum of the container cursors in RU/s; deploying again sets it back to this')
param cursorsMaxThroughput int = 4000

@description('Autoscale maximum of the container objects in RU/s; deploying again sets it back to this')
param objectsMaxThroughput int = 4000

@description('Private DNS zone of Sql endpoints; empty: names are resolved by other means')
param cosmosDnsZoneId string = ''

@description('Name of the Service Bus namespace')
param serviceBusName string = '${prefix}-${uniqueString(resourceGroup().id)}'

@description('Tier of the Service Bus namespace; private endpoints need Premium')
@allowed([
  'Standard'
  'Premium'
])
param serviceBusSku string = 'Standard'

@description('Private DNS zone of namespace endpoints; empty: names are resolved by other means')
param serviceBusDnsZoneId string = ''

@description('Name of the storage account: up to 24 lower case letters and digits')
param storageAccountName string = '${prefix}${uniqueString(resourceGroup().id)}'

@description('Days in which a blob that was deleted or replaced can be restored')
param blobRestoreDays int = 7

@description('Private DNS zone of blob endpoints; empty: names are resolved by other means')
param blobDnsZoneId string = ''

// every node of the hub
resource hub 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${prefix}-hub'
  location: location
}

// KEDA, which counts the events that wait
resource scaler 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: '${prefix}-scaler'
  location: location
}

resource cosmos 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' = {
  name: cosmosAccountName
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    consistencyPolicy: {
      defaultConsistencyLevel: cosmosConsistency
    }
    locations: [
      {
        locationName: location
        failoverPriority: 0
        isZoneRedundant: zoneRedundant
      }
    ]
    enableMultipleWriteLocations: false
    enableAutomaticFailover: true
    disableLocalAuth: true
    disableKeyBasedMetadataWriteAccess: true
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: !empty(privateEndpointSubnetId) ? 'Disabled' : 'Enabled'
    backupPolicy: {
      type: 'Continuous'
      continuousModeProperties: {
        tier: 'Continuous7Days'
      }
    }
  }
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-11-15' = {
  parent: cosmos
  name: 'messagehub'
  properties: {
    resource: {
      id: 'messagehub'
    }
  }
}

// which events each recipient received, and where its next events are stored
resource containerCatalog 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'catalog'
  properties: {
    resource: {
      id: 'catalog'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/partitionKey'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/partitionKey/?'
          }
          {
            path: '/contentType/?'
          }
          {
            path: '/ordinal/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
    }
    options: {
      autoscaleSettings: {
        maxThroughput: catalogMaxThroughput
      }
    }
  }
}

// the events, in drawers
resource containerCabinet 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'cabinet'
  properties: {
    resource: {
      id: 'cabinet'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/partitionKey'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/partitionKey/?'
          }
          {
            path: '/ordinal/?'
          }
          {
            path: '/until/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
    }
    options: {
      autoscaleSettings: {
        maxThroughput: cabinetMaxThroughput
      }
    }
  }
}

// which events were dequeued, the bundles, and notices to domains
resource containerBundles 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'bundles'
  properties: {
    resource: {
      id: 'bundles'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/recipient'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/recipient/?'
          }
          {
            path: '/expires/?'
          }
          {
            path: '/kind/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: {
      autoscaleSettings: {
        maxThroughput: bundlesMaxThroughput
      }
    }
  }
}

// the published events, in streams
resource containerStreams 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'streams'
  properties: {
    resource: {
      id: 'streams'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/partitionKey'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/partitionKey/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: {
      autoscaleSettings: {
        maxThroughput: streamsMaxThroughput
      }
    }
  }
}

// the position of each receiver, and failed deliveries
resource containerCursors 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'cursors'
  properties: {
    resource: {
      id: 'cursors'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/partitionKey'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/partitionKey/?'
          }
          {
            path: '/kind/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: {
      autoscaleSettings: {
        maxThroughput: cursorsMaxThroughput
      }
    }
  }
}

// the states of objects that stores report
resource containerObjects 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: 'objects'
  properties: {
    resource: {
      id: 'objects'
      partitionKey: {
        kind: 'Hash'
        version: 2
        paths: [
          '/partitionKey'
        ]
      }
      indexingPolicy: {
        automatic: true
        indexingMode: 'consistent'
        includedPaths: [
          {
            path: '/partitionKey/?'
          }
          {
            path: '/object/?'
          }
          {
            path: '/order/?'
          }
          {
            path: '/version/?'
          }
          {
            path: '/live/?'
          }
          {
            path: '/shards/?'
          }
          {
            path: '/current/archiveStatus/?'
          }
          {
            path: '/current/eTag/?'
          }
          {
            path: '/current/ingestId/?'
          }
          {
            path: '/current/reason/?'
          }
          {
            path: '/current/sha256/?'
          }
          {
            path: '/current/size/?'
          }
          {
            path: '/current/storageClass/?'
          }
          {
            path: '/current/version/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      defaultTtl: -1
    }
    options: {
      autoscaleSettings: {
        maxThroughput: objectsMaxThroughput
      }
    }
  }
}

resource cosmosEndpoint 'Microsoft.Network/privateEndpoints@2023-11-01' = if (!empty(privateEndpointSubnetId)) {
  name: '${cosmosAccountName}-cosmos'
  location: location
  properties: {
    subnet: {
      id: privateEndpointSubnetId
    }
    privateLinkServiceConnections: [
      {
        name: 'cosmos'
        properties: {
          privateLinkServiceId: cosmos.id
          groupIds: [
            'Sql'
          ]
        }
      }
    ]
  }
}

resource cosmosEndpointName 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2023-11-01' = if (!empty(privateEndpointSubnetId) && !empty(cosmosDnsZoneId)) {
  parent: cosmosEndpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: 'cosmos'
        properties: {
          privateDnsZoneId: cosmosDnsZoneId
        }
      }
    ]
  }
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: serviceBusName
  location: location
  sku: {
    name: !empty(privateEndpointSubnetId) ? 'Premium' : serviceBusSku
    tier: !empty(privateEndpointSubnetId) ? 'Premium' : serviceBusSku
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: !empty(privateEndpointSubnetId) ? 'Disabled' : 'Enabled'
  }
}

// events, in the order of each recipient
resource queueDataavailableFifo 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'dataavailable-fifo'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 5120
  }
}

// events of senders that set no session
resource queueDataavailable 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'dataavailable'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 5120
  }
}

// events of objects
resource queueObjectEvents 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'object-events'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 5120
  }
}

// requests for content, to Aggregations
resource queueWholesale 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'wholesale'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// answers to requests, from Aggregations
resource queueWholesaleReply 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'wholesale-reply'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'PT10M'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// notices that bundles were dequeued, to Aggregations
resource queueWholesaleDequeue 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'wholesale-dequeue'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 1024
  }
}

// requests for content, to Charges
resource queueCharges 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'charges'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// answers to requests, from Charges
resource queueChargesReply 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'charges-reply'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'PT10M'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// notices that bundles were dequeued, to Charges
resource queueChargesDequeue 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'charges-dequeue'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 1024
  }
}

// requests for content, to MarketRoles
resource queueMarketroles 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'marketroles'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// answers to requests, from MarketRoles
resource queueMarketrolesReply 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'marketroles-reply'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'PT10M'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// notices that bundles were dequeued, to MarketRoles
resource queueMarketrolesDequeue 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'marketroles-dequeue'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 1024
  }
}

// requests for content, to MeteringPoints
resource queueMeteringpoints 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'meteringpoints'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// answers to requests, from MeteringPoints
resource queueMeteringpointsReply 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'meteringpoints-reply'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'PT10M'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// notices that bundles were dequeued, to MeteringPoints
resource queueMeteringpointsDequeue 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'meteringpoints-dequeue'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 1024
  }
}

// requests for content, to TimeSeries
resource queueTimeseries 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'timeseries'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// answers to requests, from TimeSeries
resource queueTimeseriesReply 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'timeseries-reply'
  properties: {
    requiresSession: true
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'PT10M'
    deadLetteringOnMessageExpiration: false
    maxSizeInMegabytes: 1024
  }
}

// notices that bundles were dequeued, to TimeSeries
resource queueTimeseriesDequeue 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = {
  parent: serviceBus
  name: 'timeseries-dequeue'
  properties: {
    requiresSession: false
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
    deadLetteringOnMessageExpiration: true
    maxSizeInMegabytes: 1024
  }
}

resource serviceBusEndpoint 'Microsoft.Network/privateEndpoints@2023-11-01' = if (!empty(privateEndpointSubnetId)) {
  name: '${serviceBusName}-serviceBus'
  location: location
  properties: {
    subnet: {
      id: privateEndpointSubnetId
    }
    privateLinkServiceConnections: [
      {
        name: 'serviceBus'
        properties: {
          privateLinkServiceId: serviceBus.id
          groupIds: [
            'namespace'
          ]
        }
      }
    ]
  }
}

resource serviceBusEndpointName 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2023-11-01' = if (!empty(privateEndpointSubnetId) && !empty(serviceBusDnsZoneId)) {
  parent: serviceBusEndpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: 'serviceBus'
        properties: {
          privateDnsZoneId: serviceBusDnsZoneId
        }
      }
    ]
  }
}

resource storage 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: storageAccountName
  location: location
  kind: 'StorageV2'
  sku: {
    name: zoneRedundant ? 'Standard_ZRS' : 'Standard_LRS'
  }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: !empty(privateEndpointSubnetId) ? 'Disabled' : 'Enabled'
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: storage
  name: 'default'
  properties: {
    isVersioningEnabled: true
    deleteRetentionPolicy: {
      enabled: true
      days: blobRestoreDays
    }
    containerDeleteRetentionPolicy: {
      enabled: true
      days: blobRestoreDays
    }
  }
}

// payloads, and the content of bundles
resource blobsMessagehubContent 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: 'messagehub-content'
  properties: {
    publicAccess: 'None'
  }
}

// what the hub and the domains exchange
resource blobsMessagehubExchange 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: 'messagehub-exchange'
  properties: {
    publicAccess: 'None'
  }
}

resource blobRules 'Microsoft.Storage/storageAccounts/managementPolicies@2023-05-01' = {
  parent: storage
  name: 'default'
  properties: {
    policy: {
      rules: [
        {
          name: 'replaced'
          type: 'Lifecycle'
          enabled: true
          definition: {
            filters: {
              blobTypes: [
                'blockBlob'
              ]
            }
            actions: {
              version: {
                delete: {
                  daysAfterCreationGreaterThan: blobRestoreDays
                }
              }
            }
          }
        }
        {
          name: 'messagehub-exchange'
          type: 'Lifecycle'
          enabled: true
          definition: {
            filters: {
              blobTypes: [
                'blockBlob'
              ]
              prefixMatch: [
                'messagehub-exchange/'
              ]
            }
            actions: {
              baseBlob: {
                delete: {
                  daysAfterModificationGreaterThan: 30
                }
              }
            }
          }
        }
      ]
    }
  }
}

resource blobEndpoint 'Microsoft.Network/privateEndpoints@2023-11-01' = if (!empty(privateEndpointSubnetId)) {
  name: '${storageAccountName}-blob'
  location: location
  properties: {
    subnet: {
      id: privateEndpointSubnetId
    }
    privateLinkServiceConnections: [
      {
        name: 'blob'
        properties: {
          privateLinkServiceId: storage.id
          groupIds: [
            'blob'
          ]
        }
      }
    ]
  }
}

resource blobEndpointName 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2023-11-01' = if (!empty(privateEndpointSubnetId) && !empty(blobDnsZoneId)) {
  parent: blobEndpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: 'blob'
        properties: {
          privateDnsZoneId: blobDnsZoneId
        }
      }
    ]
  }
}

// The data actions that the hub uses
resource dataRole 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2024-11-15' = {
  parent: cosmos
  name: guid(cosmos.id, 'messagehub', 'MessageHub')
  properties: {
    roleName: 'MessageHub messagehub'
    type: 'CustomRole'
    assignableScopes: [
      '${cosmos.id}/dbs/messagehub'
    ]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
        ]
      }
    ]
  }
}

// hub: it reads and writes all documents
resource dataRoleHub 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2024-11-15' = {
  parent: cosmos
  name: guid(database.id, hub.id, 'MessageHub')
  properties: {
    roleDefinitionId: dataRole.id
    principalId: hub.properties.principalId
    scope: '${cosmos.id}/dbs/messagehub'
  }
}

// hub: it reads, writes, lists and deletes payloads, and the content of bundles
resource roleHubContributorBlobsMessagehubContent 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: blobsMessagehubContent
  name: guid(blobsMessagehubContent.id, hub.id, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it reads, writes, lists and deletes what the hub and the domains exchange
resource roleHubContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, hub.id, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it signs links to objects in its containers
resource roleHubDelegatorStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: storage
  name: guid(storage.id, hub.id, 'db58b8e5-c6ad-4a2a-8342-4190687cbf4a', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'db58b8e5-c6ad-4a2a-8342-4190687cbf4a')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives events
resource roleHubReceiverQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends dead letters again when an operator orders it
resource roleHubSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives events
resource roleHubReceiverQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends dead letters again when an operator orders it
resource roleHubSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives events of objects
resource roleHubReceiverQueueObjectEvents 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueObjectEvents
  name: guid(queueObjectEvents.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends dead letters again when an operator orders it
resource roleHubSenderQueueObjectEvents 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueObjectEvents
  name: guid(queueObjectEvents.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it asks for content
resource roleHubSenderQueueWholesale 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueWholesale
  name: guid(queueWholesale.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives answers
resource roleHubReceiverQueueWholesaleReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueWholesaleReply
  name: guid(queueWholesaleReply.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends notices
resource roleHubSenderQueueWholesaleDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueWholesaleDequeue
  name: guid(queueWholesaleDequeue.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it asks for content
resource roleHubSenderQueueCharges 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueCharges
  name: guid(queueCharges.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives answers
resource roleHubReceiverQueueChargesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueChargesReply
  name: guid(queueChargesReply.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends notices
resource roleHubSenderQueueChargesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueChargesDequeue
  name: guid(queueChargesDequeue.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it asks for content
resource roleHubSenderQueueMarketroles 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMarketroles
  name: guid(queueMarketroles.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives answers
resource roleHubReceiverQueueMarketrolesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMarketrolesReply
  name: guid(queueMarketrolesReply.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends notices
resource roleHubSenderQueueMarketrolesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMarketrolesDequeue
  name: guid(queueMarketrolesDequeue.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it asks for content
resource roleHubSenderQueueMeteringpoints 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMeteringpoints
  name: guid(queueMeteringpoints.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives answers
resource roleHubReceiverQueueMeteringpointsReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMeteringpointsReply
  name: guid(queueMeteringpointsReply.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends notices
resource roleHubSenderQueueMeteringpointsDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueMeteringpointsDequeue
  name: guid(queueMeteringpointsDequeue.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it asks for content
resource roleHubSenderQueueTimeseries 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueTimeseries
  name: guid(queueTimeseries.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it receives answers
resource roleHubReceiverQueueTimeseriesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueTimeseriesReply
  name: guid(queueTimeseriesReply.id, hub.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// hub: it sends notices
resource roleHubSenderQueueTimeseriesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueTimeseriesDequeue
  name: guid(queueTimeseriesDequeue.id, hub.id, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'hub')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: hub.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// scaler: it reads the number of messages
resource roleScalerReceiverQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, scaler.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'scaler')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: scaler.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// scaler: it reads the number of messages
resource roleScalerReceiverQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, scaler.id, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'scaler')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: scaler.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it announces events
resource roleAggregationsSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, domainAggregationsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it announces events
resource roleAggregationsSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, domainAggregationsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it receives requests for content
resource roleAggregationsReceiverQueueWholesale 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: queueWholesale
  name: guid(queueWholesale.id, domainAggregationsPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it answers requests
resource roleAggregationsSenderQueueWholesaleReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: queueWholesaleReply
  name: guid(queueWholesaleReply.id, domainAggregationsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it receives notices
resource roleAggregationsReceiverQueueWholesaleDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: queueWholesaleDequeue
  name: guid(queueWholesaleDequeue.id, domainAggregationsPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Aggregations: it reads ids of events, and writes content
resource roleAggregationsContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainAggregationsPrincipalId)) {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, domainAggregationsPrincipalId, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'domain:Aggregations')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: domainAggregationsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it announces events
resource roleChargesSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, domainChargesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it announces events
resource roleChargesSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, domainChargesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it receives requests for content
resource roleChargesReceiverQueueCharges 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: queueCharges
  name: guid(queueCharges.id, domainChargesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it answers requests
resource roleChargesSenderQueueChargesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: queueChargesReply
  name: guid(queueChargesReply.id, domainChargesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it receives notices
resource roleChargesReceiverQueueChargesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: queueChargesDequeue
  name: guid(queueChargesDequeue.id, domainChargesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:Charges: it reads ids of events, and writes content
resource roleChargesContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainChargesPrincipalId)) {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, domainChargesPrincipalId, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'domain:Charges')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: domainChargesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it announces events
resource roleMarketRolesSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, domainMarketRolesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it announces events
resource roleMarketRolesSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, domainMarketRolesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it receives requests for content
resource roleMarketRolesReceiverQueueMarketroles 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: queueMarketroles
  name: guid(queueMarketroles.id, domainMarketRolesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it answers requests
resource roleMarketRolesSenderQueueMarketrolesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: queueMarketrolesReply
  name: guid(queueMarketrolesReply.id, domainMarketRolesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it receives notices
resource roleMarketRolesReceiverQueueMarketrolesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: queueMarketrolesDequeue
  name: guid(queueMarketrolesDequeue.id, domainMarketRolesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MarketRoles: it reads ids of events, and writes content
resource roleMarketRolesContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMarketRolesPrincipalId)) {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, domainMarketRolesPrincipalId, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'domain:MarketRoles')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: domainMarketRolesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it announces events
resource roleMeteringPointsSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, domainMeteringPointsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it announces events
resource roleMeteringPointsSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, domainMeteringPointsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it receives requests for content
resource roleMeteringPointsReceiverQueueMeteringpoints 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: queueMeteringpoints
  name: guid(queueMeteringpoints.id, domainMeteringPointsPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it answers requests
resource roleMeteringPointsSenderQueueMeteringpointsReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: queueMeteringpointsReply
  name: guid(queueMeteringpointsReply.id, domainMeteringPointsPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it receives notices
resource roleMeteringPointsReceiverQueueMeteringpointsDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: queueMeteringpointsDequeue
  name: guid(queueMeteringpointsDequeue.id, domainMeteringPointsPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:MeteringPoints: it reads ids of events, and writes content
resource roleMeteringPointsContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainMeteringPointsPrincipalId)) {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, domainMeteringPointsPrincipalId, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'domain:MeteringPoints')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: domainMeteringPointsPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it announces events
resource roleTimeSeriesSenderQueueDataavailableFifo 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: queueDataavailableFifo
  name: guid(queueDataavailableFifo.id, domainTimeSeriesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it announces events
resource roleTimeSeriesSenderQueueDataavailable 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: queueDataavailable
  name: guid(queueDataavailable.id, domainTimeSeriesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it receives requests for content
resource roleTimeSeriesReceiverQueueTimeseries 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: queueTimeseries
  name: guid(queueTimeseries.id, domainTimeSeriesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it answers requests
resource roleTimeSeriesSenderQueueTimeseriesReply 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: queueTimeseriesReply
  name: guid(queueTimeseriesReply.id, domainTimeSeriesPrincipalId, '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it receives notices
resource roleTimeSeriesReceiverQueueTimeseriesDequeue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: queueTimeseriesDequeue
  name: guid(queueTimeseriesDequeue.id, domainTimeSeriesPrincipalId, '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

// domain:TimeSeries: it reads ids of events, and writes content
resource roleTimeSeriesContributorBlobsMessagehubExchange 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(domainTimeSeriesPrincipalId)) {
  scope: blobsMessagehubExchange
  name: guid(blobsMessagehubExchange.id, domainTimeSeriesPrincipalId, 'ba92f5b4-2d11-453d-a403-e96b0029c9fe', 'domain:TimeSeries')
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'ba92f5b4-2d11-453d-a403-e96b0029c9fe')
    principalId: domainTimeSeriesPrincipalId
    principalType: 'ServicePrincipal'
  }
}

output settings array = [
  {
    name: 'MESSAGEHUB_PRODUCTION'
    value: 'true'
  }
  {
    name: 'MESSAGEHUB_COSMOS_ENDPOINT'
    value: cosmos.properties.documentEndpoint
  }
  {
    name: 'MESSAGEHUB_COSMOS_DATABASE'
    value: 'messagehub'
  }
  {
    name: 'MESSAGEHUB_SERVICEBUS_NAMESPACE'
    value: '${serviceBusName}.servicebus.windows.net'
  }
  {
    name: 'MESSAGEHUB_SERVICEBUS_FIFO_QUEUE'
    value: 'dataavailable-fifo'
  }
  {
    name: 'MESSAGEHUB_SERVICEBUS_PLAIN_QUEUE'
    value: 'dataavailable'
  }
  {
    name: 'MESSAGEHUB_OBJECTS_QUEUE'
    value: 'object-events'
  }
  {
    name: 'MESSAGEHUB_BLOB_ENDPOINT'
    value: storage.properties.primaryEndpoints.blob
  }
  {
    name: 'MESSAGEHUB_BLOB_CONTAINER'
    value: 'messagehub'
  }
]
output serviceBusName string = serviceBusName
output fifoQueue string = 'dataavailable-fifo'
output plainQueue string = 'dataavailable'
output hubIdentityName string = '${prefix}-hub'
output hubIdentityId string = hub.id
output hubClientId string = hub.properties.clientId
output hubPrincipalId string = hub.properties.principalId
output scalerIdentityName string = '${prefix}-scaler'
output scalerIdentityId string = scaler.id
output scalerClientId string = scaler.properties.clientId
