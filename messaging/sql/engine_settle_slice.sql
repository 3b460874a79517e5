-- Those of a slice that were accepted. Repeatable; whatever else became of one is engine_settle's, one by one.
CREATE FUNCTION engine_settle_slice(
  p_channel uuid, p_messages uuid[], p_attempts integer[], p_provider_ids text[])
RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE m record;
BEGIN
  UPDATE lanes SET failures = 0 WHERE channel_id = p_channel AND failures > 0;
  PERFORM 1 FROM messages WHERE id = ANY (p_messages) ORDER BY id FOR UPDATE;
  FOR m IN SELECT * FROM unnest(p_messages, p_attempts, p_provider_ids) AS given (id, attempt, provider_id)
           ORDER BY provider_id LOOP
    PERFORM engine_evidence(m.id, p_channel, m.provider_id, m.attempt, 3, clock_timestamp());
  END LOOP;
END $$;
