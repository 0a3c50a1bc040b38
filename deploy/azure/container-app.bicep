// Not compiled by the project, which has no Bicep compiler. Check with: az bicep build --stdout --file FILE, and az deployment group validate.
// A hub on Azure Container Apps: the environment, its logs, and the app.

@description('Region of all resources')
param location string = resourceGroup().location

@description('Name of the app, and what the names of the other resources begin with')
param name string

@description('Image of MessageHub, such as example.azurecr.io/messagehub:1.0.0')
param image string

@description('Registry that the hub\'s identity pulls the image from, such as example.azurecr.io; empty: one that asks for no credentials')
param registryServer string = ''

@description('Resource id of the hub\'s identity')
param hubIdentityId string

@description('Client id of the hub\'s identity')
param hubClientId string

@description('Resource id of the identity that counts the events that wait')
param scalerIdentityId string

@description('Name of the Service Bus namespace')
param serviceBusName string

@description('Queue with sessions that events come by; empty: none')
param fifoQueue string

@description('Queue without sessions that events come by; empty: none')
param plainQueue string

@description('Settings of the hub, as {name, value}')
param settings array

@description('Issuer whose tokens say who sends a request, such as https://login.microsoftonline.com/TENANT/v2.0')
param oidcIssuer string

@description('Audience that tokens must be for')
param oidcAudience string

@description('Bearer token of the operators: at least 32 random characters')
@secure()
param adminToken string

@description('Key that seals the secrets of subscriptions: the Base64 of 32 random bytes')
@secure()
param pushSecretKey string

@description('Subnet of the environment; empty: a network that Azure creates, from which no private endpoint is reached')
param infrastructureSubnetId string = ''

@description('Clients reach the hub over the internet')
param external bool = true

@description('Smallest number of nodes')
param minReplicas int = 2

@description('Largest number of nodes')
param maxReplicas int = 6

@description('Events that wait in a queue for each node')
param messagesPerReplica int = 1000

resource logs 'Microsoft.OperationalInsights/workspaces@2023-09-01' = {
  name: '${name}-logs'
  location: location
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: 30
  }
}

resource appEnvironment 'Microsoft.App/managedEnvironments@2025-01-01' = {
  name: '${name}-environment'
  location: location
  properties: {
    appLogsConfiguration: {
      destination: 'azure-monitor'
    }
    zoneRedundant: !empty(infrastructureSubnetId)
    vnetConfiguration: empty(infrastructureSubnetId) ? null : {
      infrastructureSubnetId: infrastructureSubnetId
      internal: !external
    }
    workloadProfiles: [
      {
        name: 'Consumption'
        workloadProfileType: 'Consumption'
      }
    ]
  }
}

// Logs of the hub go to the workspace
resource environmentLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: appEnvironment
  name: 'logs'
  properties: {
    workspaceId: logs.id
    logs: [
      {
        category: 'ContainerAppConsoleLogs'
        enabled: true
      }
      {
        category: 'ContainerAppSystemLogs'
        enabled: true
      }
    ]
  }
}

resource app 'Microsoft.App/containerApps@2025-01-01' = {
  name: name
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: union({
      '${hubIdentityId}': {}
    }, {
      '${scalerIdentityId}': {}
    })
  }
  properties: {
    environmentId: appEnvironment.id
    workloadProfileName: 'Consumption'
    configuration: {
      activeRevisionsMode: 'Single'
      ingress: {
        external: external
        targetPort: 8080
        transport: 'auto'
        allowInsecure: false
      }
      registries: empty(registryServer) ? [] : [
        {
          server: registryServer
          identity: hubIdentityId
        }
      ]
      secrets: [
        {
          name: 'admin-token'
          value: adminToken
        }
        {
          name: 'push-secret-key'
          value: pushSecretKey
        }
      ]
    }
    template: {
      terminationGracePeriodSeconds: 35
      containers: [
        {
          name: 'messagehub'
          image: image
          args: [
            'serve'
          ]
          resources: {
            cpu: json('1.0')
            memory: '2Gi'
          }
          env: concat(settings, [
            {
              name: 'MESSAGEHUB_LISTEN'
              value: '0.0.0.0:8080'
            }
            {
              name: 'MESSAGEHUB_ADMIN_LISTEN'
              value: '0.0.0.0:8081'
            }
            {
              name: 'MESSAGEHUB_TLS_TERMINATED'
              value: 'true'
            }
            {
              name: 'MESSAGEHUB_WATCHES_BASE'
              value: external ? 'https://${name}.${appEnvironment.properties.defaultDomain}' : 'https://${name}.internal.${appEnvironment.properties.defaultDomain}'
            }
            {
              name: 'MESSAGEHUB_OIDC_ISSUER'
              value: oidcIssuer
            }
            {
              name: 'MESSAGEHUB_OIDC_AUDIENCE'
              value: oidcAudience
            }
            {
              name: 'MESSAGEHUB_ADMIN_TOKEN'
              secretRef: 'admin-token'
            }
            {
              name: 'MESSAGEHUB_PUSH_SECRET_KEY'
              secretRef: 'push-secret-key'
            }
            {
              name: 'AZURE_TOKEN_CREDENTIALS'
              value: 'ManagedIdentityCredential'
            }
            {
              name: 'AZURE_CLIENT_ID'
              value: hubClientId
            }
            {
              name: 'GOMEMLIMIT'
              value: '1700MiB'
            }
          ])
          probes: [
            {
              type: 'Startup'
              httpGet: {
                path: '/healthz'
                port: 8081
              }
              periodSeconds: 2
              timeoutSeconds: 3
              failureThreshold: 60
            }
            {
              type: 'Liveness'
              httpGet: {
                path: '/healthz'
                port: 8081
              }
              periodSeconds: 10
              timeoutSeconds: 3
              failureThreshold: 3
            }
            {
              type: 'Readiness'
              httpGet: {
                path: '/readyz'
                port: 8081
              }
              periodSeconds: 5
              timeoutSeconds: 3
              failureThreshold: 2
            }
          ]
          volumeMounts: [
            {
              volumeName: 'temporary'
              mountPath: '/tmp'
            }
          ]
        }
      ]
      scale: {
        minReplicas: minReplicas
        maxReplicas: maxReplicas
        rules: concat(empty(fifoQueue) ? [] : [
          {
            name: 'fifo'
            custom: {
              type: 'azure-servicebus'
              identity: scalerIdentityId
              metadata: {
                namespace: serviceBusName
                queueName: fifoQueue
                messageCount: string(messagesPerReplica)
              }
            }
          }
        ], empty(plainQueue) ? [] : [
          {
            name: 'plain'
            custom: {
              type: 'azure-servicebus'
              identity: scalerIdentityId
              metadata: {
                namespace: serviceBusName
                queueName: plainQueue
                messageCount: string(messagesPerReplica)
              }
            }
          }
        ])
      }
      volumes: [
        {
          name: 'temporary'
          storageType: 'EmptyDir'
        }
      ]
    }
  }
}

output url string = 'https://${app.properties.configuration.ingress.fqdn}'
