-- One verified delivery, raw, to disk: one round trip stands between the gateway and its 200.
CREATE FUNCTION engine_store(
  p_organization uuid, p_channel uuid, p_provider text, p_request_id text, p_headers jsonb, p_body bytea,
  p_now timestamptz)
RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE kept bigint;
BEGIN
  INSERT INTO webhook_events_log (organization_id, channel_id, provider, request_id, headers, body, received_at,
      state, event_type, attempts, next_try_at, error)
    VALUES (p_organization, p_channel, p_provider, p_request_id, p_headers, p_body, p_now, 'received', '', 0, p_now, '')
    RETURNING id INTO kept;
  RETURN kept;
END $$;
